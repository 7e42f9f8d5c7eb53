"""Compiled code on disk that cannot make a call fail.

numba trusts the files of its cache: it unpickles whatever it finds there and links it into the
process, so that a damaged file is an error for good, or the end of the process. Here every file
carries a checksum, and what does not match is compiled again and replaced. This is no protection
against others: whoever may write to the folder can run code in this process.

It replaces numba's cache in the dispatchers of this package alone.
"""

import contextlib
import hashlib
import inspect
import os
import pickle
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import llvmlite
import llvmlite.binding
import numba

from sklearn_xc._compile.code_key import NoKeyError, code_key
from sklearn_xc._compile.notices import announce_compilation, warn_once
from sklearn_xc._compile.numba_private import (
    CompileResultCacheImpl,
    FunctionCache,
    InTreeCacheLocator,
    NullCache,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
    dumps,
    rtsys,
)

_DIGEST_BYTES = 32
#: Opens a pipe without waiting for somebody to write to it.
_NO_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class KernelCache(FunctionCache):
    """Load compiled code if possible, and keep it if possible.

    Parameters
    ----------
    function : callable
        The kernel.
    sources : str
        A checksum of all that is compiled.

    Raises
    ------
    Exception
        If numba finds no folder that can be written.
    """

    def __init__(self, function: Any, sources: str) -> None:
        super().__init__(function)
        self._cache_file: Any = _Files(self._cache_path, self._impl.filename_base, sources)
        self._sources = sources
        self._problem: str | None = None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for the signature, or None if it is to be compiled."""
        found = None
        try:
            # Numba would set up its compiler, a fifth of a second that most processes never need.
            # What is compiled needs its runtime alone, and the compiler sets itself up.
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                found = self._load_overload(sig, target_context)
        except NoKeyError:  # each process compiles again
            pass
        except Exception as error:  # whatever is wrong with a file, there is the compiler
            self._problem = (
                f"The cache of compiled code in {self._cache_path} is damaged "
                f"({type(error).__name__}: {error}). The code was compiled again, results are "
                "right. Whatever else is damaged there is replaced without a further warning."
            )
        if found is None:
            found = self._load_from_elsewhere(sig, target_context)
        if found is None:
            _refuse_where_disabled()
            announce_compilation(self._cache_path)
        return found

    def _load_from_elsewhere(self, sig: Any, target_context: Any) -> Any:
        """Return code from a folder that comes before this one, but can only be read, or None.

        There it is where another user has installed the package, or filled ``NUMBA_CACHE_DIR``.
        """
        for folder in folders_with_code(self._py_func):
            if folder == self._cache_path:
                return None
            files = _Files(folder, self._impl.filename_base, self._sources)
            try:
                found = files.load(self._index_key(sig, target_context.codegen()))
            except Exception:  # not ours to mend
                continue
            if found is not None:
                return self._impl.rebuild(target_context, found)
        return None

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return sig, codegen.magic_tuple(), _checksum(code_key(self._py_func, sig))

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code for the signature, if that is possible."""
        # The warning of a damaged file waits until the file is replaced: it may be an error.
        problem, self._problem = self._problem, None
        try:
            super().save_overload(sig, data)
        except NoKeyError:
            pass
        except Exception as error:
            problem = problem or (
                f"Compiled code cannot be kept in {self._cache_path} "
                f"({type(error).__name__}: {error}). Results are right, but each process will "
                "compile again, which takes some seconds. Mend this, or set the environment "
                "variable NUMBA_CACHE_DIR to another folder."
            )
        if problem:
            warn_once(problem)


class ReadOnlyCache(KernelCache):
    """Load compiled code from a folder that cannot be written, such as one in an image.

    Parameters
    ----------
    function, sources
        As of ``KernelCache``.
    reason : Exception
        Why nothing can be kept.

    Raises
    ------
    Exception
        If there is no such folder.
    """

    def __init__(self, function: Any, sources: str, reason: Exception) -> None:
        self._impl_class = _ReadableImpl
        super().__init__(function, sources)
        self._reason = reason

    def save_overload(self, sig: Any, data: Any) -> None:
        """Warn that the code is not kept."""
        _warn_of_no_place(self._reason)


class _Readable:
    """Locator of a folder that only has to exist."""

    def ensure_cache_path(self) -> None:
        if not os.path.isdir(self.get_cache_path()):  # type: ignore[attr-defined]
            raise OSError("there is no such folder")


#: Where numba would keep code, in its order.
_PLACES: list[type[Any]] = [
    type(f"_Readable{place.__name__}", (_Readable, place), {})
    for place in (UserProvidedCacheLocator, InTreeCacheLocator, UserWideCacheLocator)
]


class _ReadableImpl(CompileResultCacheImpl):
    _locator_classes = _PLACES


def folders_with_code(function: Any) -> Iterator[str]:
    """Yield the folders that may hold code of a kernel, in the order in which they are taken."""
    file = inspect.getfile(function)
    for place in _PLACES:
        found = place.from_function(function, file)  # type: ignore[attr-defined]
        if found is not None:
            yield found.get_cache_path()


class NoCache(NullCache):
    """Have each process compile again, as there is no place for compiled code.

    Parameters
    ----------
    reason : Exception
    """

    def __init__(self, reason: Exception) -> None:
        self._reason = reason

    def load_overload(self, sig: Any, target_context: Any) -> None:
        """Announce the compilation."""
        _refuse_where_disabled()
        announce_compilation(None)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Warn that the code is not kept."""
        _warn_of_no_place(self._reason)


def _warn_of_no_place(reason: Exception) -> None:
    warn_once(
        f"There is no place where compiled code can be kept ({reason}). Results are right, but "
        "each process will compile again, which takes some seconds. Set the environment variable "
        "NUMBA_CACHE_DIR to a folder that can be written, or fill one beforehand: "
        "python -m sklearn_xc compile."
    )


def processor() -> str:
    """Return the kind of processor that code is compiled for, on which the last bits depend."""
    return str(llvmlite.binding.get_host_cpu_name())


def refuse(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise an error in place of a kernel where numba must not compile."""
    raise RuntimeError(
        "NUMBA_DISABLE_JIT is set, but the loops of sklearn_xc run only compiled: they contain "
        "vector instructions, and rely on the compiler's types. Unset it before Python starts."
    )


def _refuse_where_disabled() -> None:
    if vars(numba.config)["DISABLE_JIT"]:
        refuse()


class _Files:
    """One file for each signature of a kernel.

    It begins with a checksum of all that follows, then comes a checksum of the versions and sources
    it was made by, then the pickled kernel, signature and code. numba has an index and
    numbered data files instead; a process killed between the two, or two that write side by side,
    can leave there an index that points to the code of another signature.
    """

    def __init__(self, folder: str, kernel: str, sources: str) -> None:
        self._folder, self._kernel = folder, kernel
        made_by = (numba.__version__, llvmlite.__version__, sources)
        self._stamp = _checksum(repr(made_by).encode())

    def load(self, key: Any) -> Any:
        """Return the code for `key`, None if there is none of this version."""
        path = self._path(key)
        try:
            number = os.open(path, os.O_RDONLY | _NO_WAITING)
        except FileNotFoundError:
            return None
        with open(number, "rb") as stream:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise ValueError(f"{path.name} is no regular file")
            content = stream.read()
        digest, content = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if digest != _checksum(content):
            raise ValueError(f"{path.name} does not match its checksum")
        stamp, content = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if stamp != self._stamp:
            return None
        kernel, stored, code = pickle.loads(content)
        if (kernel, stored) != (self._kernel, key):
            raise ValueError(f"{path.name} holds other code, of {kernel}")
        return code

    def save(self, key: Any, code: Any) -> None:
        """Write the code for `key`; others see all of the file or nothing."""
        content = self._stamp + dumps((self._kernel, key, code))
        path = self._path(key)
        scratch = path.with_name(f"{path.name}.tmp.{secrets.token_hex(8)}")
        try:
            scratch.write_bytes(_checksum(content) + content)
            if path.is_dir():  # which no file can replace
                path.rename(path.with_name(f"{scratch.name}.aside"))
            os.replace(scratch, path)
        except BaseException:
            with contextlib.suppress(OSError):
                scratch.unlink()
            raise

    def flush(self) -> None:
        """Forget all code of the kernel."""
        for path in Path(self._folder).glob(f"{self._kernel}.*.nbc"):
            path.unlink(missing_ok=True)

    def _path(self, key: Any) -> Path:
        return Path(self._folder, f"{self._kernel}.{_checksum(repr(key).encode()).hex()[:16]}.nbc")


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()
