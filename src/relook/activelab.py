"""placeholder"""
import msgspec
class ActiveLab(msgspec.Struct, frozen=True):
    pass
