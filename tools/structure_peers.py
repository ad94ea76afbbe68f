"""PyTensor's factorisations of structured matrices: `python -m tools.structure_peers`, where it is.

It writes what is left of each expression of `tools.structure_table` after PyTensor's rewrites, and
its version, into `structure_peers.json`, from which the table is made. What is declared there by
`assume` is declared here by PyTensor's own.
"""

import json
import re
from pathlib import Path

RECORDED = Path(__file__).with_name("structure_peers.json")
NAMES = {
    "Solve gen": "LU", "Solve sym": "symmetric LU", "Solve pos": "Cholesky", "SLogDet": "LU",
    "Det": "LU", "MatrixInverse": "LU inverse", "Cholesky": "Cholesky", "QR": "QR",
    "CholeskySolve": "substitution", "SolveTriangular": "substitution", "Eigh": "eigenvectors",
    "Expm": "expm", "Dot22": "products", "Gemm": "products", "Gemv": "products",
}  # fmt: skip
LINALG = ("inv", "det", "eigh", "trace", "cholesky", "expm", "qr", "kron")


def kind(op):
    """The factorisation or product of an op of PyTensor; None of any other."""
    found = re.search(r"assume_a='?(\w+)", op)
    name = f"Solve {found[1]}" if found else re.split(r"[{\[(]", op.removeprefix("Blockwise{"))[0]
    return NAMES.get(name)


def answers():
    """The factorisations that PyTensor runs, for each expression."""
    import pytensor
    from pytensor import tensor as pt
    from pytensor.assumptions.specify import assume
    from pytensor.compile.mode import Mode
    from pytensor.tensor import linalg

    from tools.structure_table import EXPRESSIONS, SIZE, counted, values

    inputs = {n: pt.tensor(n, shape=v.shape, dtype="float64") for n, v in values().items()}
    a = inputs["a"]
    names = {
        **inputs,
        **{f: getattr(linalg, f) for f in LINALG},
        **{f: getattr(pt, f) for f in ["exp", "tril", "triu", "diag"]},
        "solve": lambda a, b: linalg.solve(a, b, b_ndim=b.ndim),
        "logdet": lambda a: linalg.slogdet(a)[1],
        "assume": lambda x, fact: assume(x, **{fact: True}),
        "grad": pytensor.grad,
        "eye": pt.eye(SIZE),
        "spd": assume(a @ a.T, positive_definite=True),
    }
    mode = Mode("py", "fast_run")
    found = {}
    for text in EXPRESSIONS:
        y = eval(text, names)
        run = pytensor.function([*inputs.values()], y, mode=mode, on_unused_input="ignore")
        kinds = [kind(str(node.op)) for node in run.maker.fgraph.toposort()]
        found[text] = counted([k for k in kinds if k])
    return {"version": pytensor.__version__, "runs": found}


if __name__ == "__main__":
    RECORDED.write_text(json.dumps(answers(), indent=1) + "\n", encoding="utf-8")
