// Runs SQL PREPARE and EXECUTE. They share statement names with the extended protocol. Arguments of EXECUTE must be
// literals, which may have a minus sign or a cast.

import { type BoundParameters, type Description, type ParsedStatement, typeOid } from '../../engine/engine.js'
import type { PgSession } from './context.js'
import { BindMemory } from './protocol/bound-parameters.js'
import { PgError } from './protocol/sqlstate.js'

type Statement = ParsedStatement['statement']
export type ExecuteStatement = Extract<Statement, { kind: 'execute' }>
export type PrepareStatement = Extract<Statement, { kind: 'prepare' }>
type Argument = ExecuteStatement['args'][number]

export function prepareBySql(pg: PgSession, { name, types, statementText }: PrepareStatement, text: string): string {
  if (pg.statements.has(name)) throw new PgError('42P05', `prepared statement "${name}" already exists`)
  const [statement] = pg.engine.parse(statementText)
  if (statement === undefined) throw new PgError('42601', 'an empty statement cannot be prepared')
  // The statement determines parameters whose type is unknown to PostgreSQL.
  const oids = types.map((type) => typeOid(type.name + '[]'.repeat(type.dimensions)) ?? 0)
  const fresh = { oids, description: null, memory: new BindMemory(), shape: null, responses: null, isRepeated: false }
  pg.statements.set(name, { name, statement, text, micros: pg.clock.nowMicros(), bySql: true, ...fresh })
  return 'PREPARE'
}

export interface BoundBySql {
  readonly parsed: ParsedStatement
  readonly bound: BoundParameters
  readonly types: Description['parameters']
}

export function boundBySql(pg: PgSession, { name, args }: ExecuteStatement): BoundBySql {
  const prepared = pg.statements.get(name)
  if (prepared?.statement == null) throw new PgError('26000', `prepared statement "${name}" does not exist`)
  prepared.description ??= pg.engine.describe(prepared.statement, pg.session, prepared.oids)
  const types = prepared.description.parameters
  if (args.length !== types.length) {
    throw new PgError('42601', `wrong number of parameters for prepared statement "${name}"`)
  }
  return { parsed: prepared.statement, bound: boundStrings(args.map(argumentText)), types }
}

function boundStrings(strings: readonly (string | null)[]): BoundParameters {
  const parts = strings.map((text) => (text === null ? null : Buffer.from(text, 'utf8')))
  const starts = new Int32Array(strings.length)
  const ends = new Int32Array(strings.length)
  let at = 0
  for (const [index, part] of parts.entries()) {
    starts[index] = at
    at += part?.length ?? 0
    ends[index] = part === null ? -1 : at
  }
  const bytes = Buffer.concat(parts.map((part) => part ?? Buffer.alloc(0)))
  return { count: strings.length, bytes, starts, ends, isBinary: () => false }
}

function argumentText(argument: Argument): string | null {
  switch (argument.kind) {
    case 'null':
      return null
    case 'string':
    case 'boolean':
      return String(argument.value)
    case 'integer':
    case 'decimal':
      return argument.digits
    case 'float':
      return argument.text
    case 'cast':
      return argumentText(argument.operand)
    case 'unary':
      if (argument.operator === '-') return `-${argumentText(argument.operand)}`
      break
    default:
  }
  throw new PgError('0A000', 'arguments of EXECUTE must be literals', argument.position)
}
