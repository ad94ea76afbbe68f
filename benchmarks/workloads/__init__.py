"""All the workloads, in the order in which they are shown. To add one, copy a neighbour."""

from benchmarks.workload import Workload
from benchmarks.workloads.black_scholes import BlackScholes, BlackScholes64
from benchmarks.workloads.convolution import LeNet
from benchmarks.workloads.elementwise import Kinked, Kinked64, Smooth, Smooth64
from benchmarks.workloads.linear_algebra import Chain, GaussianProcess, LogisticRegression
from benchmarks.workloads.recurrent import LSTM50, LSTM200, LSTM1000
from benchmarks.workloads.rows import Attention, LayerNormGelu, SoftmaxCrossEntropy
from benchmarks.workloads.small import DeepChain, Rosenbrock, ScalarNet
from benchmarks.workloads.training import MLP, TwoLayer, TwoLayer100

WORKLOADS: dict[str, type[Workload]] = {
    w.name: w
    for w in (
        TwoLayer,
        TwoLayer100,
        MLP,
        LSTM50,
        LSTM200,
        LSTM1000,
        LeNet,
        Kinked,
        Kinked64,
        Smooth,
        Smooth64,
        BlackScholes,
        BlackScholes64,
        LayerNormGelu,
        SoftmaxCrossEntropy,
        Attention,
        LogisticRegression,
        GaussianProcess,
        Chain,
        Rosenbrock,
        ScalarNet,
        DeepChain,
    )
}
