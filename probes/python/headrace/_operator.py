"""operator(): time and work of one step of a pipeline, as a context manager or a decorator."""
import functools
import inspect

from headrace import _account
from headrace._library import MAX_HANDLES, active, function

_begin = function("hrx_begin")
_end = function("hrx_end")
_end_one = function("hrx_end_one")
_count = function("hrx_count")
_count_here = function("hrx_count_here")

_operators = {}  # (name, kind, stage) as given -> Operator


class Operator:
    """Made by operator(); shared by all threads; enters and leaves nest, and one inside another stops the outer's
    clock."""

    __slots__ = ("name", "kind", "stage", "handle", "__weakref__")

    def __init__(self, name, kind, stage, handle):
        self.name, self.kind, self.stage, self.handle = name, kind, stage, handle

    def bind(self):
        """Registers the operator for the calling thread's stage; false where instrumentation is off."""
        if self.handle >= MAX_HANDLES or not _account.ensure():
            return False
        here = _account.join_stage()
        stage = here if self.stage is None else _account.stage_id(self.stage)
        known = _account.register_operator(_account.encoded(self.name), _account.encoded(self.kind), stage)
        _account.bind(self.handle, here, known)
        return True

    def begin(self):
        if _begin(self.handle) and self.bind():
            _begin(self.handle)

    def __enter__(self):
        if _begin(self.handle) and self.bind():
            _begin(self.handle)
        return self

    def __exit__(self, kind, error, traceback):
        if kind is None:
            _end_one(self.handle, 0)
        else:
            _end(self.handle)

    def count(self, rows=0, bytes_in=0, bytes_out=0, completions=0):
        """Adds work done. Leaving the operator without an exception has counted one completion already."""
        counts = [max(0, int(n)) for n in (completions, rows, bytes_in, bytes_out)]
        if _count(self.handle, *counts) and self.bind():
            _count(self.handle, *counts)

    def rows(self, n):
        """Adds rows that the operator made."""
        self.count(rows=n)

    def bytes(self, read=0, made=0):
        """Adds bytes that went in and came out."""
        self.count(bytes_in=read, bytes_out=made)

    async def __aenter__(self):
        raise TypeError("an operator is time of a thread, which other tasks use while this one awaits: decorate the "
                        f"coroutine function with @headrace.operator({self.name!r}), or use 'with' around code "
                        "that does not await")

    async def __aexit__(self, kind, error, traceback):
        return None

    def __call__(self, function):
        """Decorates a function. Of a generator function every element is counted and the time in which it makes one;
        of a coroutine function the time in which it runs, not that in which it awaits."""
        _check(function)
        handle, bind = self.handle, self.bind
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def decorated(*arguments, **named):
                return await _Slices(self, function(*arguments, **named))
        elif inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def decorated(*arguments, **named):
                return (yield from _slices(self, function(*arguments, **named), True))
        else:

            @functools.wraps(function)
            def decorated(*arguments, **named):
                if _begin(handle) and bind():
                    _begin(handle)
                try:
                    result = function(*arguments, **named)
                except BaseException:
                    _end(handle)
                    raise
                _end_one(handle, 0)
                return result

        decorated._headrace_operator = self
        return decorated

    def __reduce__(self):
        return operator, (self.name, self.kind, self.stage)

    def __repr__(self):
        return f"headrace.operator({self.name!r})"


class _Off(Operator):
    """An operator where instrumentation is off: decorated functions stay as they are."""

    __slots__ = ()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        return None

    def count(self, rows=0, bytes_in=0, bytes_out=0, completions=0):
        pass

    def __call__(self, function):
        _check(function)
        return function


def _check(function):
    if not callable(function) or isinstance(function, type):
        raise TypeError(f"cannot decorate {function!r}: not a function")
    if inspect.isasyncgenfunction(function):
        raise TypeError("cannot decorate an asynchronous generator: decorate the coroutine functions it awaits")


class _Slices:
    """Awaits a coroutine slice by slice."""

    def __init__(self, op, coroutine):
        self.op, self.coroutine = op, coroutine

    def __await__(self):
        return (yield from _slices(self.op, self.coroutine, False))


def _slices(op, inner, each):
    """Runs a generator or coroutine inside `op`, slice by slice: between two slices the thread is others'. `each`:
    every element is a completion, else the whole is one."""
    handle = op.handle
    step, argument = inner.send, None
    while True:
        op.begin()
        try:
            item = step(argument)
        except StopIteration as end:
            if each:
                _end(handle)
            else:
                _end_one(handle, 0)
            return end.value
        except BaseException:
            _end(handle)
            raise
        if each:
            _end_one(handle, 0)
        else:
            _end(handle)
        try:
            step, argument = inner.send, (yield item)
        except GeneratorExit:
            op.begin()
            try:
                inner.close()
            finally:
                _end(handle)
            raise
        except BaseException as error:
            step, argument = inner.throw, error


def operator(name, kind=None, stage=None):
    """Accounts for one step of a pipeline:

        with headrace.operator("decode"):
            image = decode(data)

        @headrace.operator("decode")
        def decode(data): ...

    The time of a nested operator is its own, not the outer one's. `kind` groups operators in reports (the name by
    default). `stage` is the name of the stage it belongs to: by default the calling thread's. Exceptions, results and
    signatures are those of the code inside."""
    known = _operators.get((name, kind, stage))
    if known is None:
        if not isinstance(name, str):
            raise TypeError(f"an operator's name is a str, not {type(name).__name__!r}: write "
                            "@headrace.operator(\"name\")")
        make = Operator if active() else _Off
        with _account.Process.lock:
            made = make(name, kind if kind is not None else name, stage, len(_operators))
            known = _operators.setdefault((name, kind, stage), made)
    return known


def rows(n):
    """Adds rows to the operator that the calling thread is inside."""
    _count_here(max(0, int(n)), 0, 0)


def bytes(read=0, made=0):
    """Adds bytes that went in and came out to the operator that the calling thread is inside."""
    _count_here(0, max(0, int(read)), max(0, int(made)))
