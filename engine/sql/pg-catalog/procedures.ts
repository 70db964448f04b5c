// Functions as pg_proc lists them: the input and output functions of PostgreSQL's types, and this server's SQL
// functions. Scalar functions and aggregates have a row for each signature, window functions have one without
// arguments. Operators are not listed.

import { columnTypes, dataType } from '../../types/column-types.js'
import type { AggregateFunction, ScalarFunction, TypePattern, Volatility } from '../functions/function-types.js'
import { functionEndings, pgTypeNamed, pgTypeOf, pgTypes } from './types.js'

export interface Procedure {
  readonly oid: number
  readonly name: string
  /** f(unction), a(ggregate) or w(indow). */
  readonly kind: 'f' | 'a' | 'w'
  readonly volatility: Volatility
  /** Oids of the argument types. */
  readonly takes: readonly number[]
  /** Type oid of a variadic argument; 0 without one. */
  readonly more: number
  readonly gives: number
  readonly description: string | null
}

const firstOid = 100_000
const anyOid = pgTypeNamed('any').oid
const internalOid = pgTypeNamed('internal').oid
const cstringOid = pgTypeNamed('cstring').oid

export interface FunctionTables {
  readonly scalars: readonly ScalarFunction[]
  readonly aggregates: readonly AggregateFunction[]
  readonly windows: Iterable<string>
}

/** All functions, those of types first. */
export function proceduresOf(tables: FunctionTables): readonly Procedure[] {
  return [...typeFunctions(), ...ownFunctions(tables)]
}

function typeFunctions(): Procedure[] {
  const found = new Map<number, Procedure>()
  for (const { oid: type, functions, stem } of pgTypes) {
    functions.forEach((oid, index) => {
      const ending = functionEndings[index] ?? ''
      if (oid === 0 || found.has(oid)) return
      const [takes, gives] =
        ending === 'in' || ending === 'recv'
          ? [[ending === 'in' ? cstringOid : internalOid], type]
          : [[type], ending === 'out' ? cstringOid : pgTypeNamed('bytea').oid]
      const rest = { kind: 'f', volatility: 'pure', more: 0, description: 'I/O' } as const
      found.set(oid, { oid, name: `${stem}${ending}`, takes, gives, ...rest })
    })
  }
  return [...found.values()]
}

function ownFunctions(tables: FunctionTables): Procedure[] {
  const isName = ({ name }: { readonly name: string }): boolean => /^[a-z_]\w*$/i.test(name)
  const scalars = tables.scalars.filter(isName).map(
    (entry): Omit<Procedure, 'oid'> => ({
      name: entry.name,
      kind: 'f',
      volatility: entry.volatility ?? 'pure',
      takes: entry.takes.map(oidOfPattern),
      more: entry.more === undefined ? 0 : oidOfPattern(entry.more),
      gives: oidOfResult(entry.gives),
      description: entry.description,
    }),
  )
  const aggregates = tables.aggregates.filter(isName).map(
    (entry): Omit<Procedure, 'oid'> => ({
      name: entry.name,
      kind: 'a',
      volatility: 'pure',
      takes: entry.takes.map(oidOfPattern),
      more: 0,
      gives: oidOfResult(entry.gives),
      description: entry.description,
    }),
  )
  const windows = [...tables.windows].map(
    (name): Omit<Procedure, 'oid'> => ({
      name,
      kind: 'w',
      volatility: 'pure',
      takes: [],
      more: 0,
      gives: anyOid,
      description: null,
    }),
  )
  return [...scalars, ...aggregates, ...windows].map((entry, index) => ({ oid: firstOid + index, ...entry }))
}

function oidOfPattern(pattern: TypePattern): number {
  switch (pattern) {
    case 'ANY':
      return anyOid
    case 'TEXT':
      return pgTypeNamed('text').oid
    case 'TIME':
      return pgTypeNamed('timestamp').oid
    default:
      return columnTypes[pattern].pgOid
  }
}

/** Oid of the result type. A type that depends on the arguments is shown as `any`. */
function oidOfResult(gives: ScalarFunction['gives']): number {
  return typeof gives === 'function' || gives === 'FIRST' ? anyOid : pgTypeOf(dataType(gives)).oid
}
