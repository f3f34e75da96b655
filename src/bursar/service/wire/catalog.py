from bursar.service.wire.failures import WireError
class Catalog:
    def __init__(self, config): pass
    def close(self): pass
def is_catalog(table): return False
class CatalogQuestion:
    def __init__(self, *a): raise WireError("0A000", "not yet")
