"""All the workloads, in the order in which they are shown. To add one, copy a neighbour."""

from benchmarks.workload import Workload
from benchmarks.workloads.black_scholes import BlackScholes, BlackScholes64
from benchmarks.workloads.convolution import LeNet
from benchmarks.workloads.elementwise import Kinked, Kinked64, Smooth, Smooth64
from benchmarks.workloads.grids import Augmentation, Stencil
from benchmarks.workloads.linear_algebra import Chain, GaussianProcess, LogisticRegression
from benchmarks.workloads.normalised import BatchNormNet
from benchmarks.workloads.points import Distances
from benchmarks.workloads.recurrent import LSTM50, LSTM200, LSTM1000, GRUCell
from benchmarks.workloads.rows import Attention, HalfLayerNorm, LayerNormGelu, SoftmaxCrossEntropy
from benchmarks.workloads.small import DeepChain, Lorenz96, Rosenbrock, ScalarNet
from benchmarks.workloads.training import MLP, Adam10M, TwoLayer, TwoLayer100

WORKLOADS: dict[str, type[Workload]] = {
    w.name: w
    for w in (
        TwoLayer,
        TwoLayer100,
        MLP,
        Adam10M,
        LSTM50,
        LSTM200,
        LSTM1000,
        GRUCell,
        LeNet,
        BatchNormNet,
        Kinked,
        Kinked64,
        Smooth,
        Smooth64,
        BlackScholes,
        BlackScholes64,
        LayerNormGelu,
        HalfLayerNorm,
        SoftmaxCrossEntropy,
        Attention,
        Stencil,
        Augmentation,
        Distances,
        LogisticRegression,
        GaussianProcess,
        Chain,
        Rosenbrock,
        Lorenz96,
        ScalarNet,
        DeepChain,
    )
}
