// Relations about the dialect itself: functions(), keywords(), and the settings.

import type { Value } from '../../types/value.js'
import type { BindContext } from '../bind/bind-context.js'
import { aggregateFunctions, scalarFunctions, signatureText, windowFunctionNames } from '../functions/all.js'
import { columnList } from './relation-columns.js'
import type { SystemRelation } from './relations.js'

export function functionsRelation(): SystemRelation {
  const row = (name: string, signature: string, constant: boolean, type: string): Value[] => [
    name,
    signature,
    signature,
    constant,
    type,
  ]
  return {
    columns: columnList(
      'name STRING, signature STRING, signature_translated STRING, runtime_constant BOOLEAN, type STRING',
    ),
    rows: () => [
      ...scalarFunctions.map((entry) =>
        row(entry.name, signatureText(entry), entry.volatility === 'statement', 'STANDARD'),
      ),
      ...aggregateFunctions.map((entry) => row(entry.name, signatureText(entry), false, 'GROUP_BY')),
      ...[...windowFunctionNames].map((name) => row(name, `${name}()`, false, 'WINDOW')),
    ],
  }
}

const keywords =
  `add all alter and as asc asof between by bypass cache capacity case cast copy create cross dedup desc distinct drop
  else end except exists explain fill for foreign from full grant group header if in index inner insert intersect into is join
  keys latest left like limit lt natural nocache not null on or order outer over partition primary references rename right
  sample select set show splice table tables tolerance truncate ttl union unique update upsert using values view wal when
  where window with`
    .split(/\s+/)
    .sort()

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
