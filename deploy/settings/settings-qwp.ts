// Table of the settings of QWP, the columnar protocol over WebSocket. Included in settings-table.ts.

import type { SettingsTable } from './setting-row.js'

const MIB = 1024 ** 2

export const qwpSettings = {
  'qwp.bad.value': {
    reload: true,
    type: 'choice',
    initial: 'reject',
    choices: ['reject', 'skip'],
    description:
      'What a value that does not fit its column means: `reject` rejects the message, `skip` stores the other rows, and the row is listed in `sys.rejects`.',
  },
  'qwp.hold.ms': {
    reload: true,
    type: 'duration',
    initial: '30s',
    description:
      'How long a message waits unread while the server refuses writes, before its connection is closed. Nothing is rejected: clients repeat what was not acknowledged.',
  },
  'qwp.egress.compression.force.level': {
    reload: true,
    type: 'integer',
    initial: '0',
    min: 0,
    max: 9,
    description:
      'Compression level of zstd for result batches, whatever level the client asks for: 1 to 9; 0: the level of the client.',
  },
  'qwp.max.rows.per.table': {
    type: 'integer',
    initial: '1000000',
    min: 1,
    max: 16_777_216,
    description: 'Row limit of one table in one QWP message.',
  },
  'qwp.max.tables.per.connection': {
    type: 'integer',
    initial: '10000',
    min: 1,
    max: 65_535,
    description: 'Limit of tables that one QWP connection may write to.',
  },
  'qwp.max.uncommitted.rows': {
    type: 'integer',
    initial: '1000000',
    min: 1,
    description: 'Row limit of a group of QWP messages that are committed together; a larger group is rejected.',
  },
  'qwp.groups.bytes.max': {
    type: 'size',
    initial: '128m',
    min: MIB,
    description: 'Memory for QWP messages that wait for the last one of their group, over all connections.',
  },
  'qwp.symbols.bytes.max': {
    type: 'size',
    initial: '256m',
    min: MIB,
    description: 'Memory for the symbol dictionaries of QWP connections, over all of them.',
  },
} as const satisfies SettingsTable
