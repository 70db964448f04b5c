// Functions that tools of the PostgreSQL world call to read the catalog: descriptions, rights, names.

import type { ColumnType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { ScalarFunction, TypePattern } from './function-types.js'
import { typeNameOfOid } from './pg-types.js'
import { sessionOption } from './session-options.js'

/** The role that owns everything. */
const ownerOid = 10

type Row = Omit<ScalarFunction, 'name' | 'takes' | 'gives' | 'says'>

function row(name: string, takes: readonly TypePattern[], gives: ColumnType, says: string, rest: Row): ScalarFunction {
  return { name, takes, gives, says, ...rest }
}

/** One value whatever the arguments are; one row for each list of arguments. */
function fixed(
  name: string,
  lists: readonly (readonly TypePattern[])[],
  gives: ColumnType,
  says: string,
  value: Value,
): ScalarFunction[] {
  return lists.map((takes) => row(name, takes, gives, says, { example: null, seesNull: true, eval: () => value }))
}

const notKept = 'Not kept here: NULL.'
const granted = 'Whether the user has the right: always.'

const rights: ScalarFunction[] = [
  ['has_table_privilege', 'ANY'],
  ['has_schema_privilege', 'ANY'],
  ['has_database_privilege', 'ANY'],
  ['has_any_column_privilege', 'ANY'],
  ['has_function_privilege', 'ANY'],
  ['has_sequence_privilege', 'ANY'],
  ['pg_has_role', 'ANY'],
].flatMap(([name = '']) =>
  fixed(
    name,
    [
      ['ANY', 'TEXT'],
      ['ANY', 'ANY', 'TEXT'],
    ],
    'BOOLEAN',
    granted,
    true,
  ),
)

const columnRights: ScalarFunction[] = fixed(
  'has_column_privilege',
  [
    ['ANY', 'ANY', 'TEXT'],
    ['ANY', 'ANY', 'ANY', 'TEXT'],
  ],
  'BOOLEAN',
  granted,
  true,
)

const visible: ScalarFunction[] = [
  'pg_table_is_visible',
  'pg_type_is_visible',
  'pg_function_is_visible',
  'pg_operator_is_visible',
  'pg_opclass_is_visible',
  'pg_collation_is_visible',
].map((name) =>
  row(name, ['INT'], 'BOOLEAN', 'Whether the name can be used without its schema: always.', {
    example: [`${name}(1)`, 'true'],
    eval: () => true,
  }),
)

const definitions: ScalarFunction[] = [
  ...fixed('obj_description', [['INT'], ['INT', 'TEXT']], 'STRING', notKept, null),
  ...fixed('shobj_description', [['INT', 'TEXT']], 'STRING', notKept, null),
  ...fixed('col_description', [['INT', 'INT']], 'STRING', notKept, null),
  ...fixed('pg_get_partkeydef', [['INT']], 'STRING', notKept, null),
  ...fixed('pg_get_indexdef', [['INT'], ['INT', 'INT', 'BOOLEAN']], 'STRING', notKept, null),
  ...fixed('pg_get_constraintdef', [['INT'], ['INT', 'BOOLEAN']], 'STRING', notKept, null),
  ...fixed('pg_get_viewdef', [['INT'], ['INT', 'BOOLEAN']], 'STRING', notKept, null),
  ...fixed('pg_get_triggerdef', [['INT'], ['INT', 'BOOLEAN']], 'STRING', notKept, null),
  ...fixed('pg_get_ruledef', [['INT'], ['INT', 'BOOLEAN']], 'STRING', notKept, null),
  ...fixed('pg_get_statisticsobjdef_columns', [['INT']], 'STRING', notKept, null),
  ...fixed('pg_get_function_result', [['INT']], 'STRING', notKept, null),
  ...fixed('pg_get_function_arguments', [['INT']], 'STRING', notKept, null),
  ...fixed('pg_get_function_identity_arguments', [['INT']], 'STRING', notKept, null),
  ...fixed('pg_get_serial_sequence', [['TEXT', 'TEXT']], 'STRING', notKept, null),
  row('pg_get_expr', ['TEXT', 'INT'], 'STRING', 'The expression itself.', {
    example: ["pg_get_expr('1', 5)", '1'],
    eval: ([expression]) => expression ?? null,
  }),
  row('pg_get_expr', ['TEXT', 'INT', 'BOOLEAN'], 'STRING', 'The expression itself.', {
    example: ["pg_get_expr('1', 5, true)", '1'],
    eval: ([expression]) => expression ?? null,
  }),
]

const server: ScalarFunction[] = [
  ...fixed('inet_server_addr', [[]], 'STRING', notKept, null),
  ...fixed('inet_server_port', [[]], 'INT', notKept, null),
  ...fixed('inet_client_addr', [[]], 'STRING', notKept, null),
  ...fixed('inet_client_port', [[]], 'INT', notKept, null),
  ...fixed('pg_backend_pid', [[]], 'INT', 'Accepted for compatibility.', 0),
  ...fixed('pg_my_temp_schema', [[]], 'INT', 'There are no temporary tables.', 0),
  ...fixed('pg_is_other_temp_schema', [['INT']], 'BOOLEAN', 'There are no temporary tables.', false),
  ...fixed('pg_relation_is_publishable', [['ANY']], 'BOOLEAN', 'There is no replication.', false),
  ...fixed('pg_relation_size', [['ANY'], ['ANY', 'TEXT']], 'LONG', notKept, null),
  ...fixed('pg_total_relation_size', [['ANY']], 'LONG', notKept, null),
  ...fixed('pg_table_size', [['ANY']], 'LONG', notKept, null),
  ...fixed('pg_indexes_size', [['ANY']], 'LONG', notKept, null),
  ...fixed('pg_database_size', [['ANY']], 'LONG', notKept, null),
  ...fixed('pg_tablespace_location', [['INT']], 'STRING', notKept, null),
  ...fixed('pg_try_advisory_lock', [['LONG'], ['INT', 'INT']], 'BOOLEAN', 'Accepted for compatibility.', true),
  ...fixed('pg_advisory_lock', [['LONG'], ['INT', 'INT']], 'STRING', 'Accepted for compatibility.', ''),
  ...fixed('pg_advisory_unlock', [['LONG'], ['INT', 'INT']], 'BOOLEAN', 'Accepted for compatibility.', true),
  ...fixed('age', [['LONG']], 'INT', 'Transactions have no age here.', 0),
  row('pg_postmaster_start_time', [], 'TIMESTAMP', 'Accepted for compatibility: the time of the statement.', {
    example: null,
    volatility: 'statement',
    eval: (_args, { context }) => context.nowMicros,
  }),
  row('pg_encoding_to_char', ['INT'], 'STRING', 'Name of an encoding; there is one.', {
    example: ['pg_encoding_to_char(6)', 'UTF8'],
    eval: ([id]) => (id === 6 ? 'UTF8' : ''),
  }),
  row('pg_get_userbyid', ['INT'], 'STRING', 'Name of a role.', {
    example: ['pg_get_userbyid(1)', 'public'],
    volatility: 'statement',
    eval: ([id], { context }) => (id === ownerOid ? context.user : 'public'),
  }),
  row('format_type', ['INT', 'INT'], 'STRING', 'SQL name of the type of an oid.', {
    example: ['format_type(23, -1)', 'integer'],
    seesNull: true,
    eval: ([oid]) => (typeof oid === 'number' ? typeNameOfOid(oid) : null),
  }),
  row('pg_typeof', ['ANY'], 'STRING', 'Name of the type of an expression.', {
    example: ['pg_typeof(1)', 'int'],
    seesNull: true,
    eval: (_args, { argTypes }) => (argTypes[0]?.name ?? 'unknown').toLowerCase(),
  }),
  row('current_setting', ['TEXT'], 'STRING', 'Value of an option of the session.', {
    example: ["current_setting('client_encoding')", 'UTF8'],
    eval: ([name]) => sessionOption(String(name))?.value ?? '',
  }),
  row('current_setting', ['TEXT', 'BOOLEAN'], 'STRING', 'Value of an option of the session; NULL for unknown ones.', {
    example: ["current_setting('client_encoding', true)", 'UTF8'],
    eval: ([name, lenient]) => sessionOption(String(name))?.value ?? (lenient === true ? null : ''),
  }),
  row('set_config', ['TEXT', 'TEXT', 'BOOLEAN'], 'STRING', 'Accepted for compatibility: the value.', {
    example: ["set_config('search_path', 'public', false)", 'public'],
    eval: ([, value]) => value ?? null,
  }),
]

export const pgFunctions: readonly ScalarFunction[] = [
  ...rights,
  ...columnRights,
  ...visible,
  ...definitions,
  ...server,
]
