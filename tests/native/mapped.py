"""Runs functions of the emitter on arrays."""

import numpy as np

from symgrad.native.builtin import builtin, write_wrapper
from symgrad.native.vectors import Code, Module


def mapped(engine, function, *dtypes, lanes=16):
    """A function of arrays of these dtypes, from one that writes code for values."""
    module = Module()
    code = Code(module, lanes)
    kinds = [np.dtype(d).kind + str(np.dtype(d).itemsize) for d in dtypes]
    values = []
    code.label("entry")
    for i in range(len(kinds) + 1):
        code.do(f"%a{i} = getelementptr ptr, ptr %table, i64 {i}")
        code.do(f"%b{i} = load ptr, ptr %a{i}")
    code.do("br label %loop")
    code.label("loop")
    code.do("%i = phi i64 [ 0, %entry ], [ %next, %LAST ]")
    for i, kind in enumerate(kinds):
        size = 1 if kind == "b1" else int(kind[1:])
        code.do(f"%o{i} = mul i64 %i, {size * lanes}")
        code.do(f"%p{i} = getelementptr i8, ptr %b{i}, i64 %o{i}")
        values.append(code.load(kind, f"%p{i}"))
    found = function(*values)
    out = np.dtype("bool" if found.kind == "b1" else found.kind)
    code.do(f"%oo = mul i64 %i, {out.itemsize * lanes}")
    code.do(f"%po = getelementptr i8, ptr %b{len(kinds)}, i64 %oo")
    code.store(found, "%po")
    last = code.block
    code.do("%next = add i64 %i, 1")
    code.do("%more = icmp ult i64 %next, %count")
    code.do("br i1 %more, label %loop, label %end")
    code.label("end")
    code.do("ret void")
    head = "define internal void @kernel(ptr %table, i64 %count) #0 {"
    text = "\n".join([head, *code.lines.text, "}"]).replace("%LAST", f"%{last}")
    module.definitions["@kernel"] = text
    write_wrapper(module, "kernel", [None] * (len(kinds) + 1), 1)
    call = builtin(engine, module, [*map(np.dtype, dtypes), out], 1)

    def run(*arrays):
        arrays = [np.asarray(x, d) for x, d in zip(arrays, dtypes, strict=True)]
        size = arrays[0].size
        blocks = -(-size // lanes)
        padded = [np.pad(x.ravel(), (0, blocks * lanes - size), mode="edge") for x in arrays]
        result = np.empty(blocks * lanes, out)
        call(*padded, result, blocks)
        return result[:size].reshape(arrays[0].shape)

    run.module = module
    return run
