"""Storage that many machines share: folders on file systems and in object stores, by the addresses of Spark.

In go addresses and files, out come the same files on any machine, where they can be mapped. Whatever is shared is
made of files that are written once, whole, and never changed; that two may want the same name, and one gets it, is
all that is asked of a store besides. Nothing here knows Spark or what the files are for.
"""

from harken.spark.storage.addresses import folder_at
from harken.spark.storage.cache import Cache, machine_cache
from harken.spark.storage.folders import FileEntry, Folder

__all__ = ["Cache", "FileEntry", "Folder", "folder_at", "machine_cache"]
