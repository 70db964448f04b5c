// System relations about the dialect and the server: functions(), keywords(), pg_get_keywords() and the settings.

import type { Value } from '../../types/value.js'
import { aggregateFunctions, scalarFunctions, signatureText, windowFunctionNames } from '../functions/registry/all.js'
import { pgRelations } from '../pg-catalog/catalog.js'
import type { BindContext } from '../scope/bind-context.js'
import type { SystemRelation } from './relation-columns.js'
import { columnList } from './relation-columns.js'

/** Operators that functions() lists as predicates. */
const predicates: ReadonlySet<string> = new Set(['<<', '<<=', '>>', '>>=', 'within', 'within_box', 'within_radius'])

/** Functions that are used in FROM. */
const cursors =
  `_pg_expandarray all_tables backups checkpoint_status export_files files functions generate_series glob import_files keywords long_sequence materialized_views
  information_schema.questdb_columns memory_metrics pg_get_keywords pg_listening_channels query_activity query_progress reader_pool table_columns table_partitions table_parts table_storage tables
  unnest views wal_tables wal_transactions writer_pool`.split(/\s+/)

export function functionsRelation(): SystemRelation {
  const row = (name: string, signature: string, constant: boolean, type: string): Value[] => [
    name,
    signature,
    signature,
    constant,
    type,
  ]
  const catalogNames = pgRelations.map(({ schema, name }) => `${schema}.${name}`)
  return {
    columns: columnList(
      'name STRING, signature STRING, signature_translated STRING, runtime_constant BOOLEAN, type STRING',
    ),
    rows: () => [
      ...scalarFunctions.map((entry) =>
        row(
          entry.name,
          signatureText(entry),
          entry.volatility === 'statement',
          predicates.has(entry.name) ? 'PREDICATE' : 'STANDARD',
        ),
      ),
      ...aggregateFunctions.map((entry) => row(entry.name, signatureText(entry), false, 'GROUP_BY')),
      ...[...windowFunctionNames].map((name) => row(name, `${name}()`, false, 'WINDOW')),
      ...[...cursors, ...catalogNames].map((name) => row(name, `${name}()`, false, 'CURSOR')),
    ],
  }
}

const keywords =
  `add all alter and as asc asof between by bypass cache capacity case cast copy create cross declare dedup delete desc distinct drop
  else end except exists explain fill for foreign from full grant group header if in index inner insert intersect into is join
  keys latest left like limit lt natural nocache not null offset on or order outer over partition pivot primary references rename right
  rollback sample select set show splice table tables tolerance truncate ttl union unique update upsert using values view wal when
  where window with`
    .split(/\s+/)
    .sort()

/** Columns of PostgreSQL's pg_get_keywords(); every keyword is listed as reserved. */
export function pgKeywordsRelation(): SystemRelation {
  return {
    columns: columnList('word STRING, catcode CHAR, catdesc STRING'),
    rows: () => keywords.map((keyword) => [keyword, 'R', 'reserved']),
  }
}

export function keywordsRelation(): SystemRelation {
  return { columns: columnList('keyword STRING'), rows: () => keywords.map((keyword) => [keyword]) }
}

export function parametersRelation({ catalog }: BindContext): SystemRelation {
  return {
    columns: columnList(
      'property_path STRING, env_var_name STRING, value STRING, value_source STRING, sensitive BOOLEAN, reloadable BOOLEAN',
    ),
    rows: () =>
      catalog
        .parameters()
        .map(({ name, environmentName, value, source, sensitive, reloadable }) => [
          name,
          environmentName,
          sensitive ? '****' : value,
          source,
          sensitive,
          reloadable,
        ]),
  }
}
