// SQL functions that return facts about the server, the session, its user, or the type of a value. Also
// reload_config(), and functions with a constant result that tools for PostgreSQL call.

import { productVersion } from '../../base/version.js'
import { dataType } from '../../types/column-types.js'
import { typeName } from '../../types/compare.js'
import { versionText } from '../pg-catalog/session-options.js'
import type { ScalarFunction } from './function-types.js'

function constant(
  name: string,
  gives: ScalarFunction['gives'],
  description: string,
  value: string | number | bigint | boolean,
): ScalarFunction {
  return { name, takes: [], gives, description, example: [`${name}()`, String(value)], eval: () => value }
}

function userRow(name: string): ScalarFunction {
  return {
    name,
    takes: [],
    gives: 'STRING',
    description: 'The user of the session.',
    example: null,
    volatility: 'statement',
    eval: (_args, { context }) => context.user,
  }
}

export const sessionFunctions: readonly ScalarFunction[] = [
  constant('version', 'STRING', 'Version, in the format that PostgreSQL clients expect.', versionText(undefined)),
  {
    name: 'build',
    takes: [],
    gives: 'STRING',
    description: 'Versions of the server and of Node.js.',
    example: null,
    eval: () => `Build Information: Penstock ${productVersion}, Node.js ${process.versions.node}`,
  },
  constant('current_schema', 'STRING', 'The only schema.', 'public'),
  constant('current_database', 'STRING', 'The only database.', 'qdb'),
  constant('current_catalog', 'STRING', 'The only database.', 'qdb'),
  {
    name: 'hydrate_table_metadata',
    takes: ['TEXT'],
    more: 'TEXT',
    gives: 'BOOLEAN',
    description: 'Accepted for compatibility: the catalog is always loaded.',
    example: ["hydrate_table_metadata('*')", 'true'],
    eval: () => true,
  },
  {
    name: 'reload_config',
    takes: [],
    gives: 'BOOLEAN',
    description: 'Reloads the settings; true if those that can change are in force.',
    example: null,
    volatility: 'statement',
    eval: (_args, { context }) => context.reload?.() ?? false,
  },
  constant('flush_query_cache', 'BOOLEAN', 'Empties the plan cache.', true),
  constant('txid_current', 'LONG', 'Accepted for compatibility.', 1n),
  constant('pg_is_in_recovery', 'BOOLEAN', 'Always false.', false),
  {
    name: 'pg_advisory_unlock_all',
    takes: [],
    gives: 'STRING',
    description: 'Accepted for compatibility.',
    example: null,
    eval: () => null,
  },
  userRow('current_user'),
  userRow('session_user'),
  userRow('user'),
  {
    name: 'typeOf',
    takes: ['ANY'],
    gives: ([argument]) => dataType(argument?.type.name === 'VARCHAR' ? 'VARCHAR' : 'STRING'),
    description: 'Name of the type of an expression.',
    example: ['typeOf(1)', 'INT'],
    seesNull: true,
    eval: (_, { argTypes }) => typeName(argTypes[0] ?? dataType('STRING')),
  },
]
