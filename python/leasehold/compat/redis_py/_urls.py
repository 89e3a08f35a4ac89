"""Turns the connection of a redis-py client into the url of a store."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from leasehold._errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_ADVICE = "pass a client of leasehold.connect(), or a url, in place of the redis client"
# Settings of TLS that a url can express, and settings with a fixed value. None for the first two fixed ones verifies less.
_TLS = {"ssl_ca_certs": "ca", "ssl_certfile": "cert", "ssl_keyfile": "key"}
_ALWAYS = {
    "ssl_cert_reqs": ("required", 2),  # ssl.CERT_REQUIRED, without the import
    "ssl_check_hostname": (True,),
    "ssl_ca_path": (None,),
    "ssl_ca_data": (None,),
    "ssl_password": (None,),
    "ssl_min_version": (None,),
    "ssl_ciphers": (None,),
    "ssl_validate_ocsp": (None, False),
    "ssl_validate_ocsp_stapled": (None, False),
}


def url_of(redis: Any) -> str:
    """Raises ConfigError for a connection that a url cannot describe."""
    cluster = getattr(redis, "nodes_manager", None)
    if cluster is not None:
        nodes = [(node.host, node.port) for node in cluster.startup_nodes.values()]
        settings = cluster.connection_kwargs
        is_tls = bool(settings.get("ssl")) or any(name.startswith("ssl_") for name in settings)
        return _url("cluster", nodes, "", settings, {}, is_tls)
    pool = getattr(redis, "connection_pool", None)
    settings = getattr(pool, "connection_kwargs", None)
    if pool is None or settings is None:
        raise ConfigError(f"a {type(redis).__name__} is not a client of redis-py: {_ADVICE}")
    if hasattr(pool, "sentinel_manager"):
        if not pool.is_master:
            raise ConfigError("a lock belongs on the master, and this client reads from replicas: use master_for()")
        watchers = [watcher.connection_pool.connection_kwargs for watcher in pool.sentinel_manager.sentinels]
        nodes = [(watcher.get("host", "localhost"), watcher.get("port", 26379)) for watcher in watchers]
        theirs = watchers[0]
        known = {"sentinel_username": theirs.get("username"), "sentinel_password": theirs.get("password")}
        path = f"{quote(pool.service_name, safe='')}/{_db(settings)}"
        return _url("sentinel", nodes, path, settings, known, _is_tls(pool))
    if settings.get("path") is not None:
        _refuse_providers(settings)
        known = {name: settings.get(name) for name in ("username", "password")}
        return f"redis+unix://{quote(settings['path'])}{_query({'db': _db(settings), **known})}"
    nodes = [(settings.get("host", "localhost"), settings.get("port", 6379))]
    return _url("", nodes, str(_db(settings)), settings, {}, _is_tls(pool))


def _url(
    kind: str,
    nodes: list[tuple[str, int]],
    path: str,
    settings: Mapping[str, Any],
    known: Mapping[str, Any],
    is_tls: bool,
) -> str:
    _refuse_providers(settings)
    if is_tls:
        for name, allowed in _ALWAYS.items():
            if name in settings and settings[name] not in allowed:
                # The value may be a secret.
                kind = type(settings[name]).__name__
                raise ConfigError(f"{name} (a {kind} here) cannot be expressed in the url of a store: {_ADVICE}")
        known = {**known, **{ours: settings.get(theirs) for theirs, ours in _TLS.items()}}
    scheme = f"{'rediss' if is_tls else 'redis'}{'+' if kind else ''}{kind}"
    user, password = settings.get("username"), settings.get("password")
    secret = "" if password is None and user is None else f"{_quoted(user)}:{_quoted(password)}@"
    places = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in nodes)
    return f"{scheme}://{secret}{places}{'/' if path else ''}{path}{_query(known)}"


def _is_tls(pool: Any) -> bool:
    return any("SSL" in kind.__name__ for kind in pool.connection_class.__mro__)


def _db(settings: Mapping[str, Any]) -> int:
    return int(settings.get("db") or 0)


def _refuse_providers(settings: Mapping[str, Any]) -> None:
    if settings.get("credential_provider") is not None:
        raise ConfigError(f"credentials of a provider cannot be expressed in the url of a store: {_ADVICE}")


def _quoted(text: Any) -> str:
    return "" if text is None else quote(text if isinstance(text, bytes) else str(text), safe="")


def _query(known: Mapping[str, Any]) -> str:
    given = {name: value for name, value in known.items() if value}
    return f"?{urlencode(given, quote_via=quote)}" if given else ""
