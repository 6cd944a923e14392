"""Lets a cache of an engine be imported without the engine.

Their bookkeeping is Python that imports half of the engine, which needs a card's libraries, but calls
next to nothing of it. `only(package, folder, names)` reads the modules that begin with one of
`names` from `folder`; every other one of the package, and each that is not installed, is a stand-in:
whatever is asked of it is a class that takes any arguments. What a cache does call must be among
`names`, or be set by the caller.
"""
import importlib.abc
import importlib.machinery
import pathlib
import sys
import types


class Anything(type):
    """A class that is also a decorator, a type parameter, and a part of a union of types."""

    def __getattr__(cls, name):
        return something(name)

    def __getitem__(cls, key):
        return cls

    def __or__(cls, other):
        return cls

    __ror__ = __or__


def something(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def call(self, *arguments, **named):
        decorates = len(arguments) == 1 and callable(arguments[0])
        return arguments[0] if decorates else something("returned")()
    return Anything(name, (), {"__init__": lambda self, *arguments, **named: None,
                               "__call__": call,
                               "__getattr__": lambda self, wanted: something(wanted)()})


class StandIn(types.ModuleType):
    def __getattr__(self, name):
        value = something(name)
        setattr(self, name, value)
        return value


class Loader(importlib.abc.Loader):
    def __init__(self, folder):
        self.folder = folder

    def create_module(self, spec):
        return StandIn(spec.name)

    def exec_module(self, module):
        module.__path__ = [str(self.folder / module.__name__.replace(".", "/"))]


class OfPackage(importlib.abc.MetaPathFinder):
    def __init__(self, package, folder, names):
        self.package, self.names, self.loader = package, tuple(names), Loader(folder)

    def stands_in(self, name):
        return name.split(".")[0] == self.package and not name.startswith(self.names)

    def find_spec(self, name, path=None, target=None):
        if self.stands_in(name):
            return importlib.machinery.ModuleSpec(name, self.loader, is_package=True)
        return None


class OfOthers(OfPackage):
    """Asked last: what is not installed. The standard library has modules that may be missing."""

    def stands_in(self, name):
        top = name.split(".")[0]
        return top != self.package and top not in sys.stdlib_module_names and top[0] != "_"


def only(package, folder, names):
    folder = pathlib.Path(folder)
    sys.meta_path.insert(0, OfPackage(package, folder, names))
    sys.meta_path.append(OfOthers(package, folder, names))
