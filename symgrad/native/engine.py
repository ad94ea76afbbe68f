"""The engine: IR to machine code in this process, and the objects that it keeps on disk.

llvmlite is imported when the first kernel is made. Whatever goes wrong on the way (no llvmlite, no
fused multiply-add, no executable memory) is an `Unavailable`, and NumPy does the work.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
from contextlib import nullcontext
from functools import lru_cache
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from symgrad.ir.digest import sha256
from symgrad.native.store import Store, standard_folder

# Fast ones that matter here: loops are written as vectors already.
PASSES = ("sroa", "instruction_combine", "new_gvn", "simplify_cfg")
LEAST_LLVM = 20  # that of llvmlite 0.45
OPTIMISED = " #0 {"  # in the first line of functions that are to be fast
NOTHING = "define void @nothing() { ret void }"


class Unavailable(Exception):
    """Why there is no machine code here."""


class Library:
    """Machine code that has been loaded: the addresses of its functions. It is freed with this."""

    def __init__(self, tracker: Any, engine: Engine) -> None:
        self._tracker, self._engine = tracker, engine

    def __getitem__(self, name: str) -> int:
        return int(self._tracker[name])


class Engine:
    """Compiles for one processor, and loads what was compiled. Safe to share among threads.

    `cpu` and `features` are those of this machine if they are not given; code for others can be
    looked at and kept, and is not to be run. Raises `Unavailable`.
    """

    def __init__(
        self, store: Store | None = None, cpu: str | None = None, features: str | None = None
    ) -> None:
        try:
            import llvmlite.binding as llvm
        except (ImportError, OSError) as error:
            raise Unavailable(f"llvmlite cannot be imported: {error}") from error
        self._llvm: Any = llvm
        self._lock = threading.RLock()
        self._numbers = count(1)
        self._libraries: WeakValueDictionary[bytes, Library] = WeakValueDictionary()
        self.store = store
        self.version = ".".join(map(str, llvm.llvm_version_info))
        if llvm.llvm_version_info[0] < LEAST_LLVM:
            raise Unavailable(f"llvmlite is too old: it has LLVM {self.version}")
        try:
            # Since LLVM 20 there is no initialising by hand of the rest.
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            self.triple = llvm.get_process_triple()
            self.cpu = llvm.get_host_cpu_name() if cpu is None else cpu
            found = llvm.get_host_cpu_features() if features is None else features
            self.features = found if isinstance(found, str) else found.flatten()
            # What runs once a call is compiled in a third of the time without optimising.
            self._machine, self._plain_machine = self._new_machine(), self._new_machine(0)
            self._jit: Any = None
        except RuntimeError as error:
            raise Unavailable(f"LLVM does not know this machine: {error}") from error
        flags = self.features.split(",")
        if self.triple.startswith(("x86_64", "i686", "AMD64")) and "+fma" not in flags:
            raise Unavailable("the processor has no fused multiply-add")

    def survive_forks(self) -> None:
        """Let a fork wait until LLVM is at rest: what is locked in it stays so in the child."""
        if not hasattr(os, "register_at_fork"):
            return
        # Whoever frees machine code holds the lock of llvmlite alone.
        locks = [self._lock, getattr(self._llvm.ffi.lib, "_lock", nullcontext())]

        def rest() -> None:
            for lock in locks:
                lock.__enter__()

        def go_on() -> None:
            for lock in reversed(locks):
                lock.__exit__(None, None, None)

        os.register_at_fork(before=rest, after_in_parent=go_on, after_in_child=go_on)

    @property
    def has_masks(self) -> bool:
        """Whether the processor reads and writes parts of vectors of any kind by an instruction."""
        return {"+avx512bw", "+avx512vl"} <= {*self.features.split(",")}

    def _new_machine(self, level: int = 2) -> Any:
        target = self._llvm.Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=level, reloc="pic", codemodel="small"
        )

    def _machine_for(self, ir: str) -> Any:
        return self._machine if OPTIMISED in ir else self._plain_machine

    def _optimised(self, ir: str) -> Any:
        llvm = self._llvm
        module = llvm.parse_assembly(ir, llvm.create_context())
        module.verify()
        builder = llvm.create_pass_builder(
            self._machine, llvm.create_pipeline_tuning_options(speed_level=2)
        )
        passes = llvm.create_new_module_pass_manager()
        for name in PASSES:
            getattr(passes, f"add_{name}_pass")()
        passes.run(module, builder)
        return module

    def compiled(self, ir: str) -> bytes:
        """The object of a module, from the store if it is there. Raises `Unavailable`."""
        key = "\n".join((ir, self.triple, self.cpu, self.features, self.version, *PASSES))
        with self._lock:
            found = None if self.store is None else self.store.get(key)
            if found is not None:
                return found
            try:
                found = bytes(self._machine_for(ir).emit_object(self._optimised(ir)))
            except RuntimeError as error:
                raise Unavailable(f"LLVM refuses the code: {error}") from error
        if self.store is not None:
            self.store.put(key, found)
        return found

    def assembly(self, ir: str) -> str:
        """The text of the machine code, for people."""
        with self._lock:
            return str(self._machine_for(ir).emit_assembly(self._optimised(ir)))

    def loaded(self, ir: str, exports: tuple[str, ...], imports: dict[str, int]) -> Library:
        """A module in memory that can be executed. Raises `Unavailable`.

        `imports` has the addresses of what the module calls from outside. Layers that are alike
        have groups that are the same: the code of equal modules is in memory once.
        """
        key = sha256(repr((ir, exports, sorted(imports.items()))).encode())
        known = self._libraries.get(key)
        if known is not None:
            return known
        image = self.compiled(ir)
        llvm = self._llvm
        builder = llvm.JITLibraryBuilder().add_object_img(image)
        for name in exports:
            builder.export_symbol(name)
        for name, address in imports.items():
            builder.import_symbol(name, address)
        try:
            with self._lock:
                if self._jit is None:
                    self._jit = llvm.create_lljit_compiler(self._new_machine())
                tracker = builder.link(self._jit, f"symgrad{next(self._numbers)}")
        except RuntimeError as error:
            raise Unavailable(f"the code cannot be loaded: {error}") from error
        return self._libraries.setdefault(key, Library(tracker, self))


def may_execute() -> bool:
    """Whether memory may be executed that was written to.

    Where it may not, LLVM fails, and frees memory twice: it is not to be asked there.
    """
    if not hasattr(mmap, "PROT_EXEC"):
        return True
    page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    return bool(protect(address, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC) == 0)


@lru_cache(maxsize=1)
def _host() -> Engine | str:
    if not may_execute():
        return "machine code cannot be loaded: this process may not execute what it wrote"
    try:
        found = Engine(Store.at(standard_folder()))
        found.loaded(NOTHING, ("nothing",), {})
        found.survive_forks()
    except Unavailable as error:
        return str(error)
    return found


def host() -> Engine:
    """The engine of this machine, with the user's store; it has run. Raises `Unavailable`."""
    found = _host()
    if isinstance(found, str):
        raise Unavailable(found)
    return found
