"""The relations of pg_catalog and information_schema: their columns as PostgreSQL 15 has them, and their rows.

Every row is made of public facts: the config, the name of who asks, constants of PostgreSQL. Sizes, numbers of rows and
statistics, which a database would tell here, are not known to this module at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from bursar.compile.describe import describe
from bursar.config import Config
from bursar.core.domain import Attribute
from bursar.service.wire import types
from bursar.service.wire.types import PgType, PgValue

OWNER_OID, OWNER_NAME = 10, "bursar"
PERSON_OID = 16_383
TABLE_OID, DATABASE_OID = 16_384, 16_380
CATALOG_OID, PUBLIC_OID, INFORMATION_OID = 11, 2200, 13_000
LONGEST_DESCRIPTION = 500

_PG_CATALOG = {
    "pg_namespace": "oid oid, nspname name, nspowner oid, nspacl text[]",
    "pg_class": (
        "oid oid, relname name, relnamespace oid, reltype oid, reloftype oid, relowner oid, relam oid, relfilenode "
        "oid, reltablespace oid, relpages int4, reltuples float4, relallvisible int4, reltoastrelid oid, relhasindex "
        "bool, relisshared bool, relpersistence char, relkind char, relnatts int2, relchecks int2, relhasrules bool, "
        "relhastriggers bool, relhassubclass bool, relrowsecurity bool, relforcerowsecurity bool, relispopulated "
        "bool, relreplident char, relispartition bool, relrewrite oid, relfrozenxid int4, relminmxid int4, relacl "
        "text[], reloptions text[], relpartbound text"
    ),
    "pg_attribute": (
        "attrelid oid, attname name, atttypid oid, attstattarget int4, attlen int2, attnum int2, attndims int4, "
        "attcacheoff int4, atttypmod int4, attbyval bool, attalign char, attstorage char, attcompression char, "
        "attnotnull bool, atthasdef bool, atthasmissing bool, attidentity char, attgenerated char, attisdropped bool, "
        "attislocal bool, attinhcount int4, attcollation oid, attacl text[], attoptions text[], attfdwoptions text[], "
        "attmissingval text"
    ),
    "pg_type": (
        "oid oid, typname name, typnamespace oid, typowner oid, typlen int2, typbyval bool, typtype char, typcategory "
        "char, typispreferred bool, typisdefined bool, typdelim char, typrelid oid, typsubscript text, typelem oid, "
        "typarray oid, typinput text, typoutput text, typreceive text, typsend text, typmodin text, typmodout text, "
        "typanalyze text, typalign char, typstorage char, typnotnull bool, typbasetype oid, typtypmod int4, typndims "
        "int4, typcollation oid, typdefaultbin text, typdefault text, typacl text[]"
    ),
    "pg_description": "objoid oid, classoid oid, objsubid int4, description text",
    "pg_shdescription": "objoid oid, classoid oid, description text",
    "pg_attrdef": "oid oid, adrelid oid, adnum int2, adbin text",
    "pg_constraint": (
        "oid oid, conname name, connamespace oid, contype char, condeferrable bool, condeferred bool, convalidated "
        "bool, conrelid oid, contypid oid, conindid oid, conparentid oid, confrelid oid, confupdtype char, "
        "confdeltype char, confmatchtype char, conislocal bool, coninhcount int4, connoinherit bool, conkey int2[], "
        "confkey int2[], conpfeqop oid[], conppeqop oid[], conffeqop oid[], confdelsetcols int2[], conexclop oid[], "
        "conbin text"
    ),
    "pg_index": (
        "indexrelid oid, indrelid oid, indnatts int2, indnkeyatts int2, indisunique bool, indnullsnotdistinct bool, "
        "indisprimary bool, indisexclusion bool, indimmediate bool, indisclustered bool, indisvalid bool, "
        "indcheckxmin bool, indisready bool, indislive bool, indisreplident bool, indkey int2[], indcollation oid[], "
        "indclass oid[], indoption int2[], indexprs text, indpred text"
    ),
    "pg_sequence": (
        "seqrelid oid, seqtypid oid, seqstart int8, seqincrement int8, seqmax int8, seqmin int8, seqcache int8, "
        "seqcycle bool"
    ),
    "pg_inherits": "inhrelid oid, inhparent oid, inhseqno int4, inhdetachpending bool",
    "pg_enum": "oid oid, enumtypid oid, enumsortorder float4, enumlabel name",
    "pg_range": (
        "rngtypid oid, rngsubtype oid, rngmultitypid oid, rngcollation oid, rngsubopc oid, rngcanonical text, "
        "rngsubdiff text"
    ),
    "pg_policy": (
        "oid oid, polname name, polrelid oid, polcmd char, polpermissive bool, polroles oid[], polqual text, "
        "polwithcheck text"
    ),
    "pg_statistic_ext": (
        "oid oid, stxrelid oid, stxname name, stxnamespace oid, stxowner oid, stxstattarget int4, stxkeys int2[], "
        "stxkind text[], stxexprs text"
    ),
    "pg_publication": (
        "oid oid, pubname name, pubowner oid, puballtables bool, pubinsert bool, pubupdate bool, pubdelete bool, "
        "pubtruncate bool, pubviaroot bool"
    ),
    "pg_publication_rel": "oid oid, prpubid oid, prrelid oid, prqual text, prattrs int2[]",
    "pg_publication_namespace": "oid oid, pnpubid oid, pnnspid oid",
    "pg_subscription": "oid oid, subname name, subowner oid, subenabled bool, subdbid oid",
    "pg_auth_members": "roleid oid, member oid, grantor oid, admin_option bool",
    "pg_depend": "classid oid, objid oid, objsubid int4, refclassid oid, refobjid oid, refobjsubid int4, deptype char",
    "pg_rewrite": (
        "oid oid, rulename name, ev_class oid, ev_type char, ev_enabled char, is_instead bool, ev_qual text, "
        "ev_action text"
    ),
    "pg_trigger": (
        "oid oid, tgrelid oid, tgparentid oid, tgname name, tgfoid oid, tgtype int2, tgenabled char, tgisinternal "
        "bool, tgconstrrelid oid, tgconstrindid oid, tgconstraint oid, tgdeferrable bool, tginitdeferred bool, "
        "tgnargs int2, tgattr int2[], tgargs text, tgqual text, tgoldtable name, tgnewtable name"
    ),
    "pg_proc": (
        "oid oid, proname name, pronamespace oid, proowner oid, prolang oid, procost float4, prorows float4, "
        "provariadic oid, prosupport text, prokind char, prosecdef bool, proleakproof bool, proisstrict bool, "
        "proretset bool, provolatile char, proparallel char, pronargs int2, pronargdefaults int2, prorettype oid, "
        "proargtypes oid[], proallargtypes oid[], proargmodes text[], proargnames text[], proargdefaults text, "
        "protrftypes oid[], prosrc text, probin text, prosqlbody text, proconfig text[], proacl text[]"
    ),
    "pg_operator": (
        "oid oid, oprname name, oprnamespace oid, oprowner oid, oprkind char, oprcanmerge bool, oprcanhash bool, "
        "oprleft oid, oprright oid, oprresult oid, oprcom oid, oprnegate oid, oprcode text"
    ),
    "pg_opclass": (
        "oid oid, opcmethod oid, opcname name, opcnamespace oid, opcowner oid, opcfamily oid, opcintype oid, "
        "opcdefault bool, opckeytype oid"
    ),
    "pg_cast": "oid oid, castsource oid, casttarget oid, castfunc oid, castcontext char, castmethod char",
    "pg_language": "oid oid, lanname name, lanowner oid, lanispl bool, lanpltrusted bool",
    "pg_extension": (
        "oid oid, extname name, extowner oid, extnamespace oid, extrelocatable bool, extversion text, extconfig "
        "oid[], extcondition text[]"
    ),
    "pg_foreign_table": "ftrelid oid, ftserver oid, ftoptions text[]",
    "pg_foreign_server": (
        "oid oid, srvname name, srvowner oid, srvfdw oid, srvtype text, srvversion text, srvacl text[], srvoptions "
        "text[]"
    ),
    "pg_foreign_data_wrapper": (
        "oid oid, fdwname name, fdwowner oid, fdwhandler oid, fdwvalidator oid, fdwoptions text[]"
    ),
    "pg_event_trigger": (
        "oid oid, evtname name, evtevent name, evtowner oid, evtfoid oid, evtenabled char, evttags text[]"
    ),
    "pg_default_acl": "oid oid, defaclrole oid, defaclnamespace oid, defaclobjtype char, defaclacl text[]",
    "pg_partitioned_table": (
        "partrelid oid, partstrat char, partnatts int2, partdefid oid, partattrs int2[], partclass oid[], "
        "partcollation oid[], partexprs text"
    ),
    "pg_am": "oid oid, amname name, amhandler text, amtype char",
    "pg_collation": (
        "oid oid, collname name, collnamespace oid, collowner oid, collprovider char, collisdeterministic bool, "
        "collencoding int4, collcollate text, collctype text, colliculocale text, collversion text"
    ),
    "pg_tablespace": "oid oid, spcname name, spcowner oid, spcacl text[], spcoptions text[]",
    "pg_timezone_names": "name text, abbrev text, utc_offset text, is_dst bool",
    "pg_get_keywords": "word text, catcode char, barelabel bool, catdesc text, baredesc text",
    "pg_database": (
        "oid oid, datname name, datdba oid, encoding int4, datlocprovider char, datistemplate bool, datallowconn "
        "bool, datconnlimit int4, datfrozenxid int4, datminmxid int4, dattablespace oid, datcollate text, datctype "
        "text, daticulocale text, datcollversion text, datacl text[]"
    ),
    "pg_tables": (
        "schemaname name, tablename name, tableowner name, tablespace name, hasindexes bool, hasrules bool, "
        "hastriggers bool, rowsecurity bool"
    ),
    "pg_views": "schemaname name, viewname name, viewowner name, definition text",
    "pg_matviews": (
        "schemaname name, matviewname name, matviewowner name, tablespace name, hasindexes bool, ispopulated bool, "
        "definition text"
    ),
    "pg_indexes": "schemaname name, tablename name, indexname name, tablespace name, indexdef text",
    "pg_sequences": "schemaname name, sequencename name, sequenceowner name, data_type text, last_value int8",
    "pg_stats": (
        "schemaname name, tablename name, attname name, inherited bool, null_frac float4, avg_width int4, n_distinct "
        "float4, most_common_vals text, most_common_freqs text, histogram_bounds text, correlation float4"
    ),
    "pg_stat_user_tables": (
        "relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read int8, idx_scan int8, idx_tup_fetch "
        "int8, n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_live_tup int8, n_dead_tup int8"
    ),
    "pg_prepared_xacts": "transaction int4, gid text, prepared timestamp, owner name, database name",
    "pg_locks": "locktype text, database oid, relation oid, pid int4, mode text, granted bool",
    "pg_roles": (
        "rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb bool, rolcanlogin bool, "
        "rolreplication bool, rolconnlimit int4, rolpassword text, rolvaliduntil timestamp, rolbypassrls bool, "
        "rolconfig text[], oid oid"
    ),
    "pg_user": (
        "usename name, usesysid oid, usecreatedb bool, usesuper bool, userepl bool, usebypassrls bool, passwd text, "
        "valuntil timestamp, useconfig text[]"
    ),
    "pg_settings": (
        "name text, setting text, unit text, category text, short_desc text, extra_desc text, context text, vartype "
        "text, source text, min_val text, max_val text, enumvals text[], boot_val text, reset_val text, sourcefile "
        "text, sourceline int4, pending_restart bool"
    ),
    "pg_stat_activity": (
        "datid oid, datname name, pid int4, leader_pid int4, usesysid oid, usename name, application_name text, state "
        "text, query text, backend_type text"
    ),
}

_INFORMATION = {
    "schemata": (
        "catalog_name name, schema_name name, schema_owner name, default_character_set_catalog name, "
        "default_character_set_schema name, default_character_set_name name, sql_path text"
    ),
    "tables": (
        "table_catalog name, table_schema name, table_name name, table_type text, self_referencing_column_name name, "
        "reference_generation text, user_defined_type_catalog name, user_defined_type_schema name, "
        "user_defined_type_name name, is_insertable_into text, is_typed text, commit_action text"
    ),
    "columns": (
        "table_catalog name, table_schema name, table_name name, column_name name, ordinal_position int4, "
        "column_default text, is_nullable text, data_type text, character_maximum_length int4, character_octet_length "
        "int4, numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, "
        "interval_type text, collation_name name, domain_name name, udt_catalog name, udt_schema name, udt_name name, "
        "is_identity text, identity_generation text, is_generated text, generation_expression text, is_updatable text"
    ),
    "views": "table_catalog name, table_schema name, table_name name, view_definition text",
    "table_constraints": (
        "constraint_catalog name, constraint_schema name, constraint_name name, table_catalog name, table_schema "
        "name, table_name name, constraint_type text, is_deferrable text, initially_deferred text, enforced text"
    ),
    "key_column_usage": (
        "constraint_catalog name, constraint_schema name, constraint_name name, table_catalog name, table_schema "
        "name, table_name name, column_name name, ordinal_position int4, position_in_unique_constraint int4"
    ),
    "constraint_column_usage": (
        "table_catalog name, table_schema name, table_name name, column_name name, constraint_catalog name, "
        "constraint_schema name, constraint_name name"
    ),
    "referential_constraints": (
        "constraint_catalog name, constraint_schema name, constraint_name name, unique_constraint_catalog name, "
        "unique_constraint_schema name, unique_constraint_name name, match_option text, update_rule text, delete_rule "
        "text"
    ),
    "routines": "specific_schema name, specific_name name, routine_schema name, routine_name name, routine_type text",
    "sequences": "sequence_catalog name, sequence_schema name, sequence_name name, data_type text",
    "triggers": "trigger_schema name, trigger_name name, event_object_schema name, event_object_table name",
    "character_sets": "character_set_name name, default_collate_name name",
    "enabled_roles": "role_name name",
}


def _columns(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, kind) for name, _, kind in (column.strip().partition(" ") for column in text.split(",")))


RELATIONS = {
    **{("pg_catalog", name): _columns(text) for name, text in _PG_CATALOG.items()},
    **{("information_schema", name): _columns(text) for name, text in _INFORMATION.items()},
}
"""The columns of every relation that can be looked at, with their types."""

OF_SESSION = ("pg_roles", "pg_user", "pg_settings", "pg_stat_activity")
"""Relations whose rows depend on who asks."""

OIDS = {
    "pg_type": 1247,
    "pg_attribute": 1249,
    "pg_proc": 1255,
    "pg_class": 1259,
    "pg_authid": 1260,
    "pg_database": 1262,
    "pg_constraint": 2606,
    "pg_description": 2609,
    "pg_index": 2610,
    "pg_namespace": 2615,
    "pg_attrdef": 2604,
    "pg_am": 2601,
    "pg_trigger": 2620,
    "pg_rewrite": 2618,
    "pg_policy": 3256,
    "pg_collation": 3456,
    "pg_statistic_ext": 3381,
    "pg_tablespace": 1213,
    "pg_extension": 3079,
}
"""Of relations of the catalog, as descriptions name them."""

Rows = Sequence[Sequence[PgValue]]


def _row(relation: tuple[str, str], **values: PgValue) -> list[PgValue]:
    """A row; what is not given is false, 0, or NULL."""
    empty: dict[str, PgValue] = {"bool": False, "oid": 0, "int2": 0, "int4": 0, "char": ""}
    return [values.get(name, empty.get(kind)) for name, kind in RELATIONS[relation]]


def oid_of(place: int) -> int:
    """The number of a table, by its place in the config; that of its row type is two behind."""
    return TABLE_OID + 4 * place


def rows_of(config: Config, database: str) -> dict[tuple[str, str], Rows]:
    """The rows of all relations that have any and are the same for everybody."""
    tables = [(oid_of(place), table) for place, table in enumerate(config.private)]
    columns = [
        (oid, table.table, number, column)
        for oid, table in tables
        for number, column in enumerate(table.columns.attributes, 1)
    ]
    pg, information = "pg_catalog", "information_schema"
    schemas = ((CATALOG_OID, pg), (PUBLIC_OID, "public"), (INFORMATION_OID, information))
    return {
        (pg, "pg_namespace"): [
            _row((pg, "pg_namespace"), oid=oid, nspname=name, nspowner=OWNER_OID) for oid, name in schemas
        ],
        (pg, "pg_class"): [
            _row(
                (pg, "pg_class"),
                oid=oid,
                relname=table.table,
                relnamespace=PUBLIC_OID,
                reltype=oid + 2,
                relowner=OWNER_OID,
                relam=2,
                reltuples=-1.0,
                relpersistence="p",
                relkind="r",
                relnatts=len(table.columns.attributes),
                relispopulated=True,
                relreplident="d",
            )
            for oid, table in tables
        ],
        (pg, "pg_attribute"): [_attribute(oid, number, column) for oid, _, number, column in columns],
        (pg, "pg_type"): [row for kind in types.TYPES for row in _types(kind)],
        (pg, "pg_description"): [
            *(
                [oid, OIDS["pg_class"], 0, "answers are noisy counts of groups; single rows are never shown"]
                for oid, _ in tables
            ),
            *([oid, OIDS["pg_class"], number, describe(column)] for oid, _, number, column in columns),
        ],
        (pg, "pg_am"): [[2, "heap", "heap_tableam_handler", "t"], [403, "btree", "bthandler", "i"]],
        (pg, "pg_collation"): [
            _row(
                (pg, "pg_collation"),
                oid=100,
                collname="default",
                collnamespace=CATALOG_OID,
                collowner=OWNER_OID,
                collprovider="d",
                collisdeterministic=True,
                collencoding=-1,
            )
        ],
        (pg, "pg_tablespace"): [_row((pg, "pg_tablespace"), oid=1663, spcname="pg_default", spcowner=OWNER_OID)],
        (pg, "pg_timezone_names"): [["UTC", "UTC", "00:00:00", False]],
        (pg, "pg_get_keywords"): [["bursar", "U", True, "unreserved", "can be bare label"]],
        (pg, "pg_language"): [_row((pg, "pg_language"), oid=14, lanname="sql", lanowner=OWNER_OID)],
        (pg, "pg_database"): [
            _row(
                (pg, "pg_database"),
                oid=DATABASE_OID,
                datname=database,
                datdba=OWNER_OID,
                encoding=6,
                datlocprovider="c",
                datallowconn=True,
                datconnlimit=-1,
                dattablespace=1663,
                datcollate="C",
                datctype="C",
            )
        ],
        (pg, "pg_tables"): [
            _row((pg, "pg_tables"), schemaname="public", tablename=table.table, tableowner=OWNER_NAME)
            for _, table in tables
        ],
        (information, "schemata"): [
            _row((information, "schemata"), catalog_name=database, schema_name=name, schema_owner=OWNER_NAME)
            for _, name in schemas
        ],
        (information, "tables"): [
            _row(
                (information, "tables"),
                table_catalog=database,
                table_schema="public",
                table_name=table.table,
                table_type="BASE TABLE",
                is_insertable_into="NO",
                is_typed="NO",
            )
            for _, table in tables
        ],
        (information, "columns"): [
            _row(
                (information, "columns"),
                table_catalog=database,
                table_schema="public",
                table_name=table,
                column_name=column.name,
                ordinal_position=number,
                is_nullable="YES" if column.nullable else "NO",
                data_type=types.type_of(column).sql_name,
                udt_catalog=database,
                udt_schema=pg,
                udt_name=types.type_of(column).name,
                is_identity="NO",
                is_generated="NEVER",
                is_updatable="NO",
                character_maximum_length=None,
                character_octet_length=None,
                numeric_precision=None,
                numeric_precision_radix=None,
                numeric_scale=None,
                datetime_precision=None,
            )
            for _, table, number, column in columns
        ],
    }


def _attribute(oid: int, number: int, column: Attribute) -> list[PgValue]:
    kind = types.type_of(column)
    return _row(
        ("pg_catalog", "pg_attribute"),
        attrelid=oid, attname=column.name, atttypid=kind.oid, attstattarget=-1, attlen=kind.size, attnum=number,
        attcacheoff=-1, atttypmod=-1, attbyval=kind.size in (1, 2, 4, 8), attalign="i", attnotnull=not column.nullable,
        attstorage="x" if kind.size < 0 else "p", attislocal=True, attcollation=100 if kind is types.TEXT else 0,
    )  # fmt: skip


def _types(kind: PgType) -> list[list[PgValue]]:
    """The row of a type, and that of its arrays."""
    underscored = (types.JSON, types.DATE, types.TIMESTAMP, types.TIMESTAMPTZ, types.NUMERIC)
    name = f"{kind.name}_" if kind in underscored else kind.name  # drivers know types by the names of these functions
    shared: dict[str, PgValue] = {
        "typnamespace": CATALOG_OID, "typowner": OWNER_OID, "typtype": "b", "typisdefined": True, "typdelim": ",",
        "typmodin": "-", "typmodout": "-", "typanalyze": "-", "typalign": "i", "typtypmod": -1,
        "typcollation": 100 if kind in (types.TEXT, types.VARCHAR, types.BPCHAR) else 0,
    }  # fmt: skip
    base = _row(
        ("pg_catalog", "pg_type"),
        oid=kind.oid, typname=kind.name, typlen=kind.size, typbyval=0 < kind.size <= 8, typcategory=kind.category,
        typarray=kind.array, typsubscript="-", typinput=f"{name}in", typoutput=f"{name}out", typreceive=f"{name}recv",
        typsend=f"{name}send", typstorage="x" if kind.size < 0 else "p", **shared,
    )  # fmt: skip
    if not kind.array:
        return [base]
    array = _row(
        ("pg_catalog", "pg_type"),
        oid=kind.array, typname=f"_{kind.name}", typlen=-1, typcategory="A", typelem=kind.oid,
        typsubscript="array_subscript_handler", typinput="array_in", typoutput="array_out", typreceive="array_recv",
        typsend="array_send", typstorage="x", **shared,
    )  # fmt: skip
    return [base, array]
