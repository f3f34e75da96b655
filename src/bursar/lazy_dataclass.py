"""`dataclass` of the standard library, whose methods are written when the first instance is made.

`dataclasses` writes and compiles five or six methods for every class while its module is imported: a third of the time
that importing a session takes. A free answer makes instances of a fifth of these classes, so modules that it imports
take the decorator from here. From the first instance on a class is what `dataclasses.dataclass` makes of it; to a type
checker it is one from the beginning. `fields`, `is_dataclass`, `signature`, `pickle` and classes that inherit see no
difference: whoever asks a class for its fields or arguments, or reads an instance of it from elsewhere, has its methods
written.

The core does not use it: nobody who reads its arguments has to think about when a class is complete.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses
    from collections.abc import Callable

    _one_at_a_time = threading.RLock()  # a class may have a base that is written on the way

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """The same options as `dataclasses.dataclass`, without `slots`, which needs another class."""
        if cls is None:
            return lambda decorated: dataclass(decorated, **options)
        if "__init__" in cls.__dict__:
            return dataclasses.dataclass(cls, **options)
        unwritten = _Unwritten(cls, options)
        cls.__dataclass_fields__, cls.__init__ = unwritten, unwritten.first_init()
        cls.__setstate__, cls.__signature__ = unwritten.first_state(), _Signature(unwritten)
        return cls

    class _Unwritten:
        """Stands for the fields of a class, and writes its methods when somebody asks for them."""

        def __init__(self, cls: type, options: dict[str, bool]) -> None:
            self.cls, self.options, self.written = cls, options, False

        def __get__(self, instance: object, owner: type) -> dict[str, dataclasses.Field[Any]]:
            self.write()
            return self.cls.__dataclass_fields__

        def first_init(self) -> Callable[..., None]:
            def init(instance: object, /, *args: object, **kwargs: object) -> None:
                self.write()
                self.cls.__init__(instance, *args, **kwargs)

            return init

        def first_state(self) -> Callable[..., None]:
            """For an instance that `pickle` makes, or `copy`, neither of which calls `__init__`."""

            def restore(instance: object, state: dict[str, object]) -> None:
                self.write()
                instance.__dict__.update(state)  # as both do by themselves

            return restore

        def write(self) -> None:
            """All methods but `__init__`, then `__init__` in one step: other threads wait in the one that stands there.

            It is that of an heir without fields of its own, which has all that the class has.
            """
            with _one_at_a_time:
                if self.written:
                    return
                cls, frozen = self.cls, self.options.get("frozen", False)
                del cls.__setstate__, cls.__signature__
                dataclasses.dataclass(cls, **self.options, init=False)
                names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
                heir = type(cls.__name__, (cls,), names)
                cls.__init__ = dataclasses.dataclass(heir, frozen=frozen, repr=False, eq=False).__init__
                self.written = True

    class _Signature:
        """Stands for the signature of a class, or of an heir, until the methods of the class are written."""

        def __init__(self, unwritten: _Unwritten) -> None:
            self.unwritten = unwritten

        def __get__(self, instance: object, owner: type) -> object:
            import inspect  # takes as long to load as what is saved here

            self.unwritten.write()
            return inspect.signature(owner)
