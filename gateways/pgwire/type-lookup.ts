// asyncpg asks for types that it has not met by a query over pg_type that refers to itself (WITH RECURSIVE), which SQL here
// has not. It is asked without: a type leads to the type of its elements or of its range, and that one leads nowhere,
// because there are no domains, and rows of tables are no values. Names and order of the columns are what it reads.

const question = /^\s*with\s+recursive\s+typeinfo_tree\s*\(/i

const found = `select t.oid, ns.nspname ns, t.typname name, t.typtype kind, null::oid basetype, t.typelem elemtype,
  e.typdelim elemdelim, r.rngsubtype range_subtype, null attrtypoids, null attrnames
from pg_catalog.pg_type t join pg_catalog.pg_namespace ns on ns.oid = t.typnamespace
left join pg_catalog.pg_type e on t.typlen = -1 and t.typelem != 0 and t.typelem = e.oid
left join pg_catalog.pg_range r on t.oid = r.rngtypid`

const names = `null basetype_name, elemtype::regtype::text elemtype_name, range_subtype::regtype::text range_subtype_name`

const answer = `with asked as (${found} where t.oid = any($1::oid[])),
  below as (${found} where t.oid in (select elemtype from asked) or t.oid in (select range_subtype from asked))
select distinct *, 1 depth, ${names} from below union all select *, 0 depth, ${names} from asked order by depth desc`

/** The text as it is carried out. */
export function withTypeLookup(text: string): string {
  return question.test(text) ? answer : text
}
