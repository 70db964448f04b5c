// SQL functions that tools for PostgreSQL call when they read the catalog, such as those on privileges, descriptions,
// type names, addresses, locks and statistics. Query threads have no catalog, so while binding, bind/catalog-calls.ts
// replaces calls of functions that need it, often by a call that looks a key up in a constant map. The replaced
// functions have only a signature here, for the list of functions; the look-up functions are implemented here.

import { AssertionError, SqlError } from '../../base/errors.js'
import type { ColumnType } from '../../types/column-types.js'
import { noLabel } from '../../types/convert.js'
import { nameParts, quoteIdent } from '../../types/identifier.js'
import { oids } from '../../types/pg-oids.js'
import { textElements } from '../../types/text-lists.js'
import type { Value } from '../../types/value.js'
import { pgRelations } from '../pg-catalog/catalog.js'
import type { Procedure } from '../pg-catalog/procedures.js'
import { optionKey } from '../pg-catalog/session-options.js'
import { formatType } from '../pg-catalog/types.js'
import type { CallSite, ScalarFunction, TypePattern } from './function-types.js'

type Row = Omit<ScalarFunction, 'name' | 'takes' | 'gives' | 'description'>

function row(
  name: string,
  takes: readonly TypePattern[],
  gives: ColumnType,
  description: string,
  rest: Row,
): ScalarFunction {
  return { name, takes, gives, description, ...rest }
}

/** Functions with a constant result, one entry for each list of argument types. */
function fixed(
  name: string,
  lists: readonly (readonly TypePattern[])[],
  gives: ColumnType,
  description: string,
  value: Value,
): ScalarFunction[] {
  return lists.map((takes) =>
    row(name, takes, gives, description, { example: null, seesNull: true, eval: () => value }),
  )
}

function advisory(name: string, value: boolean | ''): ScalarFunction[] {
  const gives = value === '' ? 'STRING' : 'BOOLEAN'
  return fixed(name, [['LONG'], ['INT', 'INT']], gives, 'Accepted for compatibility.', value)
}

const notRetained = 'Not stored here: NULL.'
const granted = 'Whether the user has the privilege: always true.'

const rights: ScalarFunction[] = [
  ['has_table_privilege', 'ANY'],
  ['has_schema_privilege', 'ANY'],
  ['has_database_privilege', 'ANY'],
  ['has_any_column_privilege', 'ANY'],
  ['has_function_privilege', 'ANY'],
  ['has_sequence_privilege', 'ANY'],
  ['pg_has_role', 'ANY'],
  ['has_language_privilege', 'ANY'],
  ['has_tablespace_privilege', 'ANY'],
  ['has_type_privilege', 'ANY'],
  ['has_foreign_data_wrapper_privilege', 'ANY'],
  ['has_server_privilege', 'ANY'],
  ['has_parameter_privilege', 'ANY'],
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

const hiddenOids: ReadonlySet<Value> = new Set(
  pgRelations.filter(({ schema }) => schema === 'information_schema').map(({ oid }) => oid),
)

const tableIsVisible = row(
  'pg_table_is_visible',
  ['INT'],
  'BOOLEAN',
  'Whether the name is visible without its schema: true except for information_schema.',
  { example: ['pg_table_is_visible(1)', 'true'], eval: ([oid]) => !hiddenOids.has(oid ?? null) },
)

const visible: ScalarFunction[] = [
  'pg_type_is_visible',
  'pg_function_is_visible',
  'pg_operator_is_visible',
  'pg_opclass_is_visible',
  'pg_collation_is_visible',
  'pg_conversion_is_visible',
  'pg_opfamily_is_visible',
  'pg_statistics_obj_is_visible',
  'pg_ts_config_is_visible',
  'pg_ts_dict_is_visible',
  'pg_ts_parser_is_visible',
  'pg_ts_template_is_visible',
].map((name) =>
  row(name, ['INT'], 'BOOLEAN', 'Whether the name is visible without its schema: always true.', {
    example: [`${name}(1)`, 'true'],
    eval: () => true,
  }),
)

const numberDigits: Readonly<Record<number, readonly [precision: number, scale: number | null, radix: number]>> = {
  [oids.int2]: [16, 0, 2],
  [oids.int4]: [32, 0, 2],
  [oids.int8]: [64, 0, 2],
  [oids.float4]: [24, null, 2],
  [oids.float8]: [53, null, 2],
}

/** Precision or scale from a NUMERIC's type modifier, which holds both, plus 4. */
function numericPart(modifier: number, shift: number): number | null {
  return modifier < 0 ? null : ((modifier - 4) >> shift) & 0xffff
}

function typePart(
  name: string,
  description: string,
  [modifier, shown]: readonly [modifier: number, shown: string],
  part: (oid: number, modifier: number) => number | null | undefined,
  type: number,
): ScalarFunction {
  return row(name, ['INT', 'INT'], 'INT', description, {
    example: [`${name}(${type}, ${modifier})`, shown],
    eval: ([oid, written]) => part(Number(oid), Number(written)) ?? null,
  })
}

const nameWithOid = row('nameconcatoid', ['TEXT', 'INT'], 'STRING', "A routine's specific name: its name and oid.", {
  example: ["nameconcatoid('now', 1299)", 'now_1299'],
  eval: ([name, oid]) => {
    const number = `_${String(oid)}`
    return String(name).slice(0, nameCharactersMax - number.length) + number
  },
})

const nameCharactersMax = 63
const isTimeOid = (oid: number): boolean => ([oids.time, oids.timestamp, oids.timestamptz] as number[]).includes(oid)
const isCharOid = (oid: number): boolean => ([oids.bpchar, oids.varchar] as number[]).includes(oid)

/**
 * Functions with which PostgreSQL's information_schema derives properties from a type and its modifier. Code generators
 * call them.
 */
const typeParts: ScalarFunction[] = [
  typePart(
    '_pg_char_max_length',
    'Maximum length of a character type.',
    [14, '10'],
    (oid, modifier) => (isCharOid(oid) && modifier >= 0 ? modifier - 4 : null),
    oids.varchar,
  ),
  typePart(
    '_pg_numeric_precision',
    'Precision of a numeric type.',
    [655_366, '10'],
    (oid, modifier) => (oid === oids.numeric ? numericPart(modifier, 16) : numberDigits[oid]?.[0]),
    oids.numeric,
  ),
  typePart(
    '_pg_numeric_scale',
    'Scale of a numeric type.',
    [655_366, '2'],
    (oid, modifier) => (oid === oids.numeric ? numericPart(modifier, 0) : numberDigits[oid]?.[1]),
    oids.numeric,
  ),
  typePart(
    '_pg_numeric_precision_radix',
    'Radix of the precision of a numeric type.',
    [-1, '10'],
    (oid) => (oid === oids.numeric ? 10 : numberDigits[oid]?.[2]),
    oids.numeric,
  ),
  typePart(
    '_pg_datetime_precision',
    'Fractional digits of seconds of a timestamp type.',
    [3, '3'],
    (oid, modifier) => (isTimeOid(oid) ? (modifier < 0 ? 6 : modifier) : oid === oids.date ? 0 : null),
    oids.timestamp,
  ),
]

const definitions: ScalarFunction[] = [
  ...fixed('acldefault', [['ANY', 'INT']], 'STRING', 'An empty list: privileges are not stored as lists.', '{}'),
  ...fixed('pg_get_partkeydef', [['INT']], 'STRING', notRetained, null),
  ...fixed('pg_index_column_has_property', [['ANY', 'ANY', 'ANY']], 'BOOLEAN', notRetained, null),
  ...fixed('pg_index_has_property', [['ANY', 'ANY']], 'BOOLEAN', notRetained, null),
  ...fixed('pg_indexam_has_property', [['ANY', 'ANY']], 'BOOLEAN', notRetained, null),
  ...fixed('pg_get_triggerdef', [['INT'], ['INT', 'BOOLEAN']], 'STRING', notRetained, null),
  ...fixed('pg_get_ruledef', [['INT'], ['INT', 'BOOLEAN']], 'STRING', notRetained, null),
  ...fixed('pg_get_statisticsobjdef_columns', [['INT']], 'STRING', notRetained, null),
  row('pg_get_expr', ['TEXT', 'INT'], 'STRING', 'The expression itself.', {
    example: ["pg_get_expr('1', 5)", '1'],
    eval: ([expression]) => expression ?? null,
  }),
  row('pg_get_expr', ['TEXT', 'INT', 'BOOLEAN'], 'STRING', 'The expression itself.', {
    example: ["pg_get_expr('1', 5, true)", '1'],
    eval: ([expression]) => expression ?? null,
  }),
]

/** `integer, VARIADIC any` */
function argumentsText({ takes, more }: { readonly takes: readonly number[]; readonly more: number }): string {
  const shown = takes.map((oid) => formatType(oid, null))
  return (more === 0 ? shown : [...shown, `VARIADIC ${formatType(more, null)}`]).join(', ')
}

type ProcedureLookup = (oid: number) => Procedure | undefined

const aboutFunctions = (procedureOfOid: ProcedureLookup): ScalarFunction[] => [
  ...['pg_get_function_arguments', 'pg_get_function_identity_arguments'].map((name) =>
    row(name, ['INT'], 'STRING', 'Types of the arguments of a function of pg_proc.', {
      example: [`${name}(1242)`, 'cstring'],
      eval: ([oid]) => {
        const found = procedureOfOid(Number(oid))
        return found === undefined ? null : argumentsText(found)
      },
    }),
  ),
  row('pg_get_function_result', ['INT'], 'STRING', 'Type of the result of a function of pg_proc.', {
    example: ['pg_get_function_result(1242)', 'boolean'],
    eval: ([oid]) => {
      const found = procedureOfOid(Number(oid))
      return found === undefined ? null : formatType(found.gives, null)
    },
  }),
  row('obj_description', ['INT', 'TEXT'], 'STRING', 'The comment of a table, or the description of a function.', {
    example: ["obj_description(1242, 'pg_proc')", 'I/O'],
    eval: ([oid, catalog]) => (catalog === 'pg_proc' ? (procedureOfOid(Number(oid))?.description ?? null) : null),
  }),
  ...fixed('obj_description', [['INT']], 'STRING', 'The comment of a table.', null),
  ...fixed('shobj_description', [['INT', 'TEXT']], 'STRING', notRetained, null),
  ...fixed('col_description', [['INT', 'INT']], 'STRING', 'The comment of a column.', null),
  ...fixed('pg_get_functiondef', [['INT']], 'STRING', notRetained, null),
  ...fixed('pg_get_function_sqlbody', [['INT']], 'STRING', notRetained, null),
  ...fixed('pg_get_function_arg_default', [['INT', 'INT']], 'STRING', notRetained, null),
]

/** The value of a key in a constant map that the binder put into the plan. */
function listed(key: Value | undefined, { memo }: CallSite, list: Value | undefined): string | undefined {
  let names = memo.get('names') as Readonly<Record<string, string>> | undefined
  if (names === undefined) {
    names = JSON.parse(String(list)) as Readonly<Record<string, string>>
    memo.set('names', names)
  }
  return names[String(key)]
}

function labelsOf({ memo }: CallSite, list: Value | undefined): ReadonlySet<string | null> {
  const known = memo.get('labels') as ReadonlySet<string | null> | undefined
  const labels = known ?? new Set(textElements(String(list)))
  if (known === undefined) memo.set('labels', labels)
  return labels
}

const lookUps: ScalarFunction[] = [
  row('catalog_name', ['INT', 'STRING'], 'STRING', 'Name of an oid; implements `oid::regclass`.', {
    example: ['catalog_name(7, \'{"7":"t"}\')', 't'],
    eval: ([oid, list], site) => listed(oid, site, list) ?? (oid === 0 ? '-' : String(oid)),
  }),
  row('catalog_number', ['TEXT', 'STRING'], 'INT', 'Oid of a name; implements `name::regclass`.', {
    example: ['catalog_number(\'t\', \'{"t":"7"}\')', '7'],
    eval: ([name, list], site) => {
      const found = listed(name, site, list) ?? listed(nameParts(String(name)).map(quoteIdent).join('.'), site, list)
      if (found === undefined) throw new SqlError(`unknown name [name=${String(name)}]`, site.position)
      return Number(found)
    },
  }),
  row('catalog_text', ['INT', 'STRING'], 'STRING', 'Text that belongs to an oid.', {
    example: ['catalog_text(7, \'{"7":"t"}\')', 't'],
    eval: ([oid, list], site) => listed(oid, site, list) ?? null,
  }),
  row('catalog_text', ['TEXT', 'STRING'], 'STRING', 'Text that belongs to a catalog name.', {
    example: ['catalog_text(\'t\', \'{"t":"u"}\')', 'u'],
    eval: ([name, list], site) => listed(name, site, list) ?? null,
  }),
  row('enum_in', ['TEXT', 'STRING', 'STRING'], 'STRING', 'The string, which must be a label of the enumeration.', {
    example: ["enum_in('a', 'mood', '{a,b}')", 'a'],
    eval: ([text, name, labels], site) => {
      if (labelsOf(site, labels).has(String(text))) return String(text)
      throw new SqlError(noLabel(String(text), String(name)), site.position)
    },
  }),
  row('role_name', ['INT', 'STRING'], 'STRING', 'Name of a role.', {
    example: ['role_name(1, \'{"10":"admin"}\')', 'public'],
    eval: ([oid, list], site) => listed(oid, site, list) ?? 'public',
  }),
]

const server: ScalarFunction[] = [
  ...fixed('inet_server_addr', [[]], 'STRING', notRetained, null),
  ...fixed('inet_server_port', [[]], 'INT', notRetained, null),
  ...fixed('inet_client_addr', [[]], 'STRING', notRetained, null),
  ...fixed('inet_client_port', [[]], 'INT', notRetained, null),
  ...fixed('pg_my_temp_schema', [[]], 'INT', 'There are no temporary tables.', 0),
  ...fixed('pg_is_other_temp_schema', [['INT']], 'BOOLEAN', 'There are no temporary tables.', false),
  ...fixed('pg_relation_is_publishable', [['ANY']], 'BOOLEAN', 'There is no replication.', false),
  ...fixed('pg_indexes_size', [['ANY']], 'LONG', notRetained, null),
  ...fixed('pg_tablespace_location', [['INT']], 'STRING', notRetained, null),
  ...['', '_xact'].flatMap((scope) => [
    ...advisory(`pg_try_advisory${scope}_lock`, true),
    ...advisory(`pg_try_advisory${scope}_lock_shared`, true),
    ...advisory(`pg_advisory${scope}_lock`, ''),
    ...advisory(`pg_advisory${scope}_lock_shared`, ''),
  ]),
  ...advisory('pg_advisory_unlock', true),
  ...advisory('pg_advisory_unlock_shared', true),
  ...[
    'numscans',
    'tuples_returned',
    'tuples_fetched',
    'live_tuples',
    'dead_tuples',
    'blocks_fetched',
    'blocks_hit',
  ].flatMap((name) => fixed(`pg_stat_get_${name}`, [['INT']], 'LONG', 'Not measured here: 0.', 0n)),
  ...fixed('getdatabaseencoding', [[]], 'STRING', 'Encoding of stored strings.', 'UTF8'),
  ...fixed('pg_get_replica_identity_index', [['ANY']], 'INT', notRetained, null),
  ...fixed('pg_get_partition_constraintdef', [['INT']], 'STRING', notRetained, null),
  ...fixed('pg_get_partition_ancestors', [['ANY']], 'STRING', notRetained, null),
  ...fixed('pg_sequence_last_value', [['ANY']], 'LONG', notRetained, null),
  ...fixed('pg_last_xact_replay_timestamp', [[]], 'TIMESTAMP', 'There is no replication: NULL.', null),
  ...fixed('pg_blocking_pids', [['INT']], 'STRING', 'An empty list: no statement waits for a lock.', '{}'),
  ...fixed('mxid_age', [['LONG']], 'INT', 'Transactions have no age.', 0),
  ...fixed('age', [['LONG']], 'INT', 'Transactions have no age.', 0),
  row('pg_postmaster_start_time', [], 'TIMESTAMP', 'Accepted for compatibility: the time of the statement.', {
    example: null,
    volatility: 'statement',
    eval: (_args, { context }) => context.nowMicros,
  }),
  row('pg_char_to_encoding', ['TEXT'], 'INT', 'Number of the only encoding.', {
    example: ["pg_char_to_encoding('UTF8')", '6'],
    eval: ([name]) => (/^utf-?8$/i.test(String(name)) ? 6 : -1),
  }),
  row('pg_encoding_to_char', ['INT'], 'STRING', 'Name of the only encoding.', {
    example: ['pg_encoding_to_char(6)', 'UTF8'],
    eval: ([id]) => (id === 6 ? 'UTF8' : ''),
  }),
  row('format_type', ['INT', 'INT'], 'STRING', 'SQL name of the type of an oid.', {
    example: ['format_type(23, -1)', 'integer'],
    seesNull: true,
    eval: ([oid, modifier]: readonly [Value, number | null]) =>
      typeof oid === 'number' ? formatType(oid, modifier) : null,
  }),
  row('oidvectortypes', ['TEXT'], 'STRING', 'SQL names of the types of a list of oids.', {
    example: ["oidvectortypes('23 25')", 'integer, text'],
    eval: ([list]) => (String(list).match(/\d+/g) ?? []).map((oid) => formatType(Number(oid), null)).join(', '),
  }),
  row('pg_typeof', ['ANY'], 'STRING', 'Name of the type of an expression.', {
    example: ['pg_typeof(1)', 'int'],
    seesNull: true,
    eval: (_args, { argTypes }) => (argTypes[0]?.name ?? 'unknown').toLowerCase(),
  }),
  row('setting_value', ['TEXT', 'STRING'], 'STRING', 'Value of a setting of the session.', {
    example: ['setting_value(\'a\', \'{"a":"1"}\')', '1'],
    eval: ([name, list], site) => listed(optionKey(String(name)), site, list) ?? null,
  }),
]

/** Entries of functions that bind/catalog-calls.ts replaces while binding, so that they are never evaluated. */
function bound(name: string, takes: readonly TypePattern[], gives: ColumnType, description: string): ScalarFunction {
  const evaluate = (): never => {
    throw new AssertionError(`B2: a call of the catalog was not bound [name=${name}]`)
  }
  return row(name, takes, gives, description, {
    example: null,
    volatility: 'statement',
    seesNull: true,
    eval: evaluate,
  })
}

const ofCatalog: ScalarFunction[] = [
  ...['regclass', 'regtype', 'regproc', 'regprocedure', 'regnamespace', 'regrole'].map((kind) =>
    bound(`to_${kind}`, ['TEXT'], 'INT', `Number of the catalog behind a name, as \`'name'::${kind}\`; NULL for none.`),
  ),
  bound('pg_get_userbyid', ['INT'], 'STRING', 'Name of a role.'),
  bound('pg_get_viewdef', ['ANY'], 'STRING', 'Definition of a view.'),
  bound('pg_get_viewdef', ['ANY', 'ANY'], 'STRING', 'Definition of a view.'),
  bound('pg_get_constraintdef', ['INT'], 'STRING', 'A declared key, as CREATE TABLE writes it; NULL for none.'),
  bound('pg_get_constraintdef', ['INT', 'BOOLEAN'], 'STRING', 'The same.'),
  bound('pg_get_indexdef', ['ANY'], 'STRING', 'CREATE INDEX of a key; NULL for none.'),
  bound('pg_get_indexdef', ['ANY', 'INT', 'BOOLEAN'], 'STRING', 'The same, or, by its place, a column of it.'),
  bound('pg_relation_size', ['ANY'], 'LONG', "Size of a table's parts in bytes."),
  bound('pg_relation_size', ['ANY', 'TEXT'], 'LONG', "Size of a table's parts in bytes."),
  bound('pg_table_size', ['ANY'], 'LONG', "Size of a table's parts in bytes."),
  bound('pg_total_relation_size', ['ANY'], 'LONG', "Size of a table's parts in bytes."),
  bound('pg_database_size', ['ANY'], 'LONG', "Size of all tables' parts in bytes."),
  bound('pg_tablespace_size', ['ANY'], 'LONG', "Size of all tables' parts in bytes."),
  bound('pg_backend_pid', [], 'INT', 'Process id of the session.'),
  bound('pg_export_snapshot', [], 'STRING', 'Id with which other transactions can use the snapshot of this one.'),
  bound('nextval', ['TEXT'], 'LONG', 'Next number of a sequence or numbered column.'),
  bound('currval', ['TEXT'], 'LONG', 'Last number of a sequence or numbered column, in any session.'),
  bound('lastval', [], 'LONG', 'The last number that nextval() or a numbered column returned in this session.'),
  bound('setval', ['TEXT', 'LONG'], 'LONG', 'Sets the last number of a sequence or numbered column.'),
  bound(
    'setval',
    ['TEXT', 'LONG', 'BOOLEAN'],
    'LONG',
    'Sets the last number of a sequence or numbered column, or with false the next one.',
  ),
  bound(
    'pg_get_serial_sequence',
    ['TEXT', 'TEXT'],
    'STRING',
    'Name of the counter of a column of a table; NULL for none.',
  ),
  bound('pg_cancel_backend', ['INT'], 'BOOLEAN', 'Cancels the statement of a PostgreSQL session.'),
  bound('pg_terminate_backend', ['INT'], 'BOOLEAN', 'Ends a PostgreSQL session.'),
  bound('pg_terminate_backend', ['INT', 'LONG'], 'BOOLEAN', 'Ends a PostgreSQL session.'),
  bound('pg_client_encoding', [], 'STRING', 'Encoding of strings that clients send.'),
  bound('current_setting', ['TEXT'], 'STRING', 'Value of a setting of the session.'),
  bound(
    'current_setting',
    ['TEXT', 'BOOLEAN'],
    'STRING',
    'Value of a setting of the session; with true, NULL for unknown ones.',
  ),
  bound(
    'pg_notify',
    ['TEXT', 'TEXT'],
    'STRING',
    'Sends a payload to the listeners of a channel when the transaction commits.',
  ),
  bound('pg_sleep', ['DOUBLE'], 'STRING', 'Delays the start of the query by a number of seconds.'),
  bound('set_config', ['TEXT', 'TEXT', 'BOOLEAN'], 'STRING', 'Sets a setting of the session; returns the value.'),
  row('set_config', ['TEXT', 'TEXT'], 'STRING', 'The same for a name that is not constant, if there is no row.', {
    example: null,
    volatility: 'statement',
    seesNull: true,
    eval: () => {
      throw new SqlError('set_config() takes a constant name', 0)
    },
  }),
]

/** `procedureOfOid` finds a function of pg_proc in all tables, including this one; undefined if there is none. */
export const catalogFunctions = (procedureOfOid: ProcedureLookup): readonly ScalarFunction[] => [
  ...rights,
  ...columnRights,
  tableIsVisible,
  ...visible,
  ...definitions,
  ...typeParts,
  nameWithOid,
  ...aboutFunctions(procedureOfOid),
  ...lookUps,
  ...ofCatalog,
  ...server,
]
