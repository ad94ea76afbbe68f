"""Floor 13: what symgrad's tests check with, for the tests of others: programs, rules, graphs."""

from symgrad.testing.by_hand import assert_same_gradient as assert_same_gradient
from symgrad.testing.equality import assert_equivalent as assert_equivalent
from symgrad.testing.equality import assert_same as assert_same
from symgrad.testing.equality import tolerances as tolerances
from symgrad.testing.gradients import Report as Report
from symgrad.testing.gradients import Verdict as Verdict
from symgrad.testing.gradients import check_grads as check_grads
from symgrad.testing.graphs import random_feeds as random_feeds
from symgrad.testing.graphs import random_graph as random_graph
from symgrad.testing.graphs import special_values as special_values
from symgrad.testing.rules import check_rule as check_rule
from symgrad.testing.spellings import spellings as spellings
