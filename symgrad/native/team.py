"""The team: threads that share out machine code, of which Python knows nothing.

To wake a thread takes 10 to 100 µs, so each spins for a while after its work, in which it begins
what comes next within a microsecond. There is one team in a process, and it does one thing at a
time: who finds it busy works alone. The caller works, too, and waits for nobody who has not begun.
Which thread does what makes no difference to any bit.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from symgrad.native.engine import Library, Unavailable, host
from symgrad.native.mode import GET_MODE, SET_MODE, register
from symgrad.native.vectors import FEATURES

SPIN = 200_000  # nanoseconds
SHARE_ROWS = "symgrad_share_rows"
SHARE_PARTS = "symgrad_share_parts"
SHARE_ROWS_DECLARED = f"declare void @{SHARE_ROWS}(ptr, ptr, i64, i64, i64, i64)"

# `share_parts(f, x, n, threads)` calls f(x, i) for each i below n. `share_rows(f, x, first, end,
# piece, threads)` calls f(x, a, b) for rows from a to b, so many in a piece.
#
# `job` counts what has been begun. `state` is 2**32 while others may join, plus how many have;
# `done` how many of them have ended. `taken` is how many parts have been, of `count`. `mode` tells
# whether the caller takes subnormal numbers for 0.
IR = """
@begun = internal global i32 0
@busy = internal global i32 0, align 64
@job = internal global i64 0, align 64
@state = internal global i64 0, align 64
@done = internal global i64 0, align 64
@taken = internal global i64 0, align 64
@count = internal global i64 0, align 64
@most = internal global i64 0
@mode = internal global i64 0
@function = internal global ptr null
@argument = internal global ptr null
@workers = internal global i64 0
@asleep = internal global i64 0, align 64
@resting = internal global i64 0
@mutex = internal global [128 x i8] zeroinitializer, align 64
@awake = internal global [128 x i8] zeroinitializer, align 64
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @sigfillset(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sched_yield()
declare i32 @clock_gettime(i32, ptr)
declare void {pause_declared}

; Of several that begin at once, the first does.
define void @symgrad_begin_team() #1 {{
  %pair = cmpxchg ptr @begun, i32 0, i32 1 seq_cst seq_cst
  %won = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %won, label %begin, label %end
begin:
  call void @symgrad_renew_team()
  br label %end
end:
  ret void
}}

; As it is with no threads: a process that was forked has none of them.
define void @symgrad_renew_team() #1 {{
  %a = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %b = call i32 @pthread_cond_init(ptr @awake, ptr null)
  store i64 0, ptr @workers
  store i64 0, ptr @asleep
  store i64 0, ptr @state
  store i32 0, ptr @busy
  ret void
}}

define void @symgrad_rest_team() #1 {{
  store atomic i64 1, ptr @resting seq_cst, align 8
  ret void
}}

define internal i64 @now() #1 {{
  %t = alloca [2 x i64]
  %r = call i32 @clock_gettime(i32 {clock}, ptr %t)
  %s = load i64, ptr %t
  %at = getelementptr i64, ptr %t, i64 1
  %n = load i64, ptr %at
  %m = mul i64 %s, 1000000000
  %sum = add i64 %m, %n
  ret i64 %sum
}}

define internal void @work() #1 {{
  %f = load ptr, ptr @function
  %x = load ptr, ptr @argument
  %n = load i64, ptr @count
  br label %next
next:
  %i = atomicrmw add ptr @taken, i64 1 seq_cst
  %left = icmp slt i64 %i, %n
  br i1 %left, label %do, label %end
do:
  call void %f(ptr %x, i64 %i)
  br label %next
end:
  ret void
}}

; Join what has been begun, if that may still be, and work for it, as its caller computes.
define internal void @join() #1 {{
  br label %look
look:
  %s = load atomic i64, ptr @state seq_cst, align 8
  %open = icmp uge i64 %s, 4294967296
  br i1 %open, label %room, label %no
room:
  %most = load atomic i64, ptr @most seq_cst, align 8
  %joined = and i64 %s, 4294967295
  %has = icmp ult i64 %joined, %most
  br i1 %has, label %try, label %no
try:
  %more = add i64 %s, 1
  %pair = cmpxchg ptr @state, i64 %s, i64 %more seq_cst seq_cst
  %won = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %won, label %in, label %look
in:
  %m = load i64, ptr @mode
  call void @{set_mode}(i64 %m)
  call void @work()
  %d = atomicrmw add ptr @done, i64 1 seq_cst
  ret void
no:
  ret void
}}

define internal ptr @serve(ptr %begun) #1 {{
  %first = ptrtoint ptr %begun to i64
  br label %spin
spin:
  %seen = phi i64 [ %first, %0 ], [ %new, %work ]
  %began = call i64 @now()
  %last = add i64 %began, {spin}
  br label %turns
turns:
  br label %turn
turn:
  %k = phi i64 [ 0, %turns ], [ %k1, %pause ]
  %g = load atomic i64, ptr @job seq_cst, align 8
  %is = icmp ne i64 %g, %seen
  br i1 %is, label %work, label %pause
pause:
  call void {pause}
  %k1 = add i64 %k, 1
  %again = icmp ult i64 %k1, 64
  br i1 %again, label %turn, label %yield
yield:
  %y = call i32 @sched_yield()
  %t = call i64 @now()
  %rest = load atomic i64, ptr @resting seq_cst, align 8
  %none = icmp eq i64 %rest, 0
  %soon = icmp slt i64 %t, %last
  %early = and i1 %none, %soon
  br i1 %early, label %turns, label %sleep
sleep:
  %l = call i32 @pthread_mutex_lock(ptr @mutex)
  %a = atomicrmw add ptr @asleep, i64 1 seq_cst
  br label %check
check:
  %h = load atomic i64, ptr @job seq_cst, align 8
  %same = icmp eq i64 %h, %seen
  br i1 %same, label %wait, label %wake
wait:
  %w = call i32 @pthread_cond_wait(ptr @awake, ptr @mutex)
  br label %check
wake:
  %b = atomicrmw sub ptr @asleep, i64 1 seq_cst
  %u = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %work
work:
  %new = load atomic i64, ptr @job seq_cst, align 8
  call void @join()
  br label %spin
}}

; Have so many workers, if the system gives them; how many there are.
define internal i64 @hire(i64 %wanted) #1 {{
  %id = alloca i64
  %every = alloca [256 x i8], align 16
  %before = alloca [256 x i8], align 16
  br label %look
look:
  %n = load i64, ptr @workers
  %few = icmp slt i64 %n, %wanted
  br i1 %few, label %more, label %end
more:
  %job = load atomic i64, ptr @job seq_cst, align 8
  %x = inttoptr i64 %job to ptr
  ; Signals are for the threads that know of them.
  %f = call i32 @sigfillset(ptr %every)
  %b = call i32 @pthread_sigmask(i32 {setmask}, ptr %every, ptr %before)
  %r = call i32 @pthread_create(ptr %id, ptr null, ptr @serve, ptr %x)
  %u = call i32 @pthread_sigmask(i32 {setmask}, ptr %before, ptr null)
  %failed = icmp ne i32 %r, 0
  br i1 %failed, label %end, label %made
made:
  %t = load i64, ptr %id
  %d = call i32 @pthread_detach(i64 %t)
  %n1 = add i64 %n, 1
  store i64 %n1, ptr @workers
  br label %look
end:
  ret i64 %n
}}

define void @{parts}(ptr %f, ptr %x, i64 %n, i64 %threads) #1 {{
  %parts = icmp slt i64 %n, 2
  %alone = icmp slt i64 %threads, 2
  %one = or i1 %parts, %alone
  br i1 %one, label %serial, label %ask
ask:
  %pair = cmpxchg ptr @busy, i32 0, i32 1 seq_cst seq_cst
  %free = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %free, label %begin, label %serial
begin:
  %fewer = call i64 @llvm.smin.i64(i64 %threads, i64 %n)
  %others = sub i64 %fewer, 1
  %have = call i64 @hire(i64 %others)
  %most = call i64 @llvm.smin.i64(i64 %have, i64 %others)
  store ptr %f, ptr @function
  store ptr %x, ptr @argument
  store i64 %n, ptr @count
  %m = call i64 @{get_mode}()
  store i64 %m, ptr @mode
  store atomic i64 0, ptr @resting seq_cst, align 8
  store atomic i64 0, ptr @taken seq_cst, align 8
  store atomic i64 0, ptr @done seq_cst, align 8
  store atomic i64 %most, ptr @most seq_cst, align 8
  store atomic i64 4294967296, ptr @state seq_cst, align 8
  %j = atomicrmw add ptr @job, i64 1 seq_cst
  %z = load atomic i64, ptr @asleep seq_cst, align 8
  %sleeping = icmp ne i64 %z, 0
  br i1 %sleeping, label %wake, label %go
wake:
  %l = call i32 @pthread_mutex_lock(ptr @mutex)
  %c = call i32 @pthread_cond_broadcast(ptr @awake)
  %u = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %go
go:
  call void @work()
  %s = atomicrmw and ptr @state, i64 4294967295 seq_cst
  %joined = and i64 %s, 4294967295
  br label %turns
turns:
  br label %turn
turn:
  %k = phi i64 [ 0, %turns ], [ %k1, %pause ]
  %d = load atomic i64, ptr @done seq_cst, align 8
  %all = icmp eq i64 %d, %joined
  br i1 %all, label %end, label %pause
pause:
  call void {pause}
  %k1 = add i64 %k, 1
  %again = icmp ult i64 %k1, 256
  br i1 %again, label %turn, label %yield
yield:
  %y = call i32 @sched_yield()
  br label %turns
end:
  store atomic i32 0, ptr @busy seq_cst, align 4
  ret void
serial:
  br label %each
each:
  %i = phi i64 [ 0, %serial ], [ %i1, %do ]
  %left = icmp slt i64 %i, %n
  br i1 %left, label %do, label %ready
do:
  call void %f(ptr %x, i64 %i)
  %i1 = add i64 %i, 1
  br label %each
ready:
  ret void
}}

declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)

%rows = type {{ ptr, ptr, i64, i64, i64 }}

define internal void @piece(ptr %r, i64 %i) #1 {{
  %v = load %rows, ptr %r
  %f = extractvalue %rows %v, 0
  %x = extractvalue %rows %v, 1
  %first = extractvalue %rows %v, 2
  %end = extractvalue %rows %v, 3
  %size = extractvalue %rows %v, 4
  %before = mul i64 %i, %size
  %a = add i64 %first, %before
  %next = add i64 %a, %size
  %b = call i64 @llvm.smin.i64(i64 %next, i64 %end)
  call void %f(ptr %x, i64 %a, i64 %b)
  ret void
}}

define void @{rows}(ptr %f, ptr %x, i64 %first, i64 %end, i64 %piece, i64 %threads) #1 {{
  %r = alloca %rows
  %size = call i64 @llvm.smax.i64(i64 %piece, i64 1)
  %v0 = insertvalue %rows undef, ptr %f, 0
  %v1 = insertvalue %rows %v0, ptr %x, 1
  %v2 = insertvalue %rows %v1, i64 %first, 2
  %v3 = insertvalue %rows %v2, i64 %end, 3
  %v4 = insertvalue %rows %v3, i64 %size, 4
  store %rows %v4, ptr %r
  %count = sub i64 %end, %first
  %less = sub i64 %size, 1
  %up = add i64 %count, %less
  %n = sdiv i64 %up, %size
  call void @{parts}(ptr @piece, ptr %r, i64 %n, i64 %threads)
  ret void
}}
"""
# How a processor is told that a thread waits: the call, and how it is declared.
ARM = "@llvm.aarch64.hint(i32 1)", "@llvm.aarch64.hint(i32)"
PAUSES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"x86_64": ("@llvm.x86.sse2.pause()",) * 2, "aarch64": ARM, "arm64": ARM}
)
# What of it is the system's, and Python's standard library has in every process.
SYSTEM = (
    "pthread_create", "pthread_detach", "pthread_mutex_init", "pthread_mutex_lock",
    "pthread_mutex_unlock", "pthread_cond_init", "pthread_cond_wait", "pthread_cond_broadcast",
    "pthread_sigmask", "sigfillset", "sched_yield", "clock_gettime",
)  # fmt: skip


class Team(NamedTuple):
    """The addresses of `share_rows` and `share_parts`, whose code stays for good.

    `rest()` has its threads sleep until there is work: others need their processors.
    """

    rows: int
    parts: int
    rest: Callable[[], None]


@lru_cache(maxsize=1)
def team() -> Team:
    """The team of this process. Raises `Unavailable` where there are no POSIX threads."""
    engine = host()
    try:
        process = ctypes.CDLL(None)
        known = {n: ctypes.cast(getattr(process, n), ctypes.c_void_p).value for n in SYSTEM}
    except (AttributeError, OSError, TypeError):
        raise Unavailable("there are no POSIX threads") from None
    is_mac = "darwin" in engine.triple
    pause = next((p for arch, p in PAUSES.items() if engine.triple.startswith(arch)), None)
    if pause is None:
        raise Unavailable(f"it is not known how a thread waits on {engine.triple}")
    functions = register(engine.triple).functions
    text = (
        FEATURES
        + functions
        + IR.format(
            get_mode=GET_MODE,
            set_mode=SET_MODE,
            clock=6 if is_mac else 1,
            pause=pause[0],
            pause_declared=pause[1],
            spin=SPIN,
            setmask=int(signal.SIG_SETMASK),
            parts=SHARE_PARTS,
            rows=SHARE_ROWS,
        )
    )
    own = ("symgrad_begin_team", "symgrad_renew_team", "symgrad_rest_team")
    found = {name: at or 0 for name, at in known.items()}
    library = engine.loaded(text, (SHARE_ROWS, SHARE_PARTS, *own), found)
    _keep(library)
    begin, renew, rest = (ctypes.PYFUNCTYPE(None)(library[name]) for name in own)
    begin()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)
    return Team(library[SHARE_ROWS], library[SHARE_PARTS], rest)


def _keep(library: Library) -> None:
    """Keep the code for good: threads are in it when the interpreter takes all else apart."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))


def has_team() -> bool:
    """Whether there is a team in this process."""
    try:
        return team() is not None
    except Unavailable:
        return False
