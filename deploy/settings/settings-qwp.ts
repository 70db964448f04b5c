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
  'qwp.udp.enabled': {
    type: 'boolean',
    initial: 'false',
    description: 'Receive QWP datagrams. Nobody authenticates: whoever reaches the address can write.',
  },
  'qwp.udp.bind.to': {
    type: 'address',
    initial: '0.0.0.0:9007',
    description: 'Address of the receiver of QWP datagrams.',
  },
  'qwp.udp.unicast': {
    type: 'boolean',
    initial: 'true',
    description: 'Whether datagrams are sent to this server alone; otherwise it joins the group `qwp.udp.join`.',
  },
  'qwp.udp.join': {
    type: 'text',
    initial: '224.1.1.1',
    pattern: /^(22[4-9]|23[0-9])(\.(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])){3}$|^[fF][fF][0-9A-Fa-f:]+$/,
    description: 'Multicast group of the receiver of QWP datagrams, unless `qwp.udp.unicast` is set.',
  },
  'qwp.udp.commit.interval': {
    type: 'duration',
    initial: '2s',
    description: 'How long QWP datagrams are collected before they are committed together.',
  },
  'qwp.udp.max.uncommitted.datagrams': {
    type: 'integer',
    initial: '1048576',
    min: 1,
    description: 'Number of QWP datagrams that are committed before `qwp.udp.commit.interval` is over.',
  },
  'qwp.udp.msg.buffer.size': {
    type: 'size',
    initial: '64k',
    min: 64,
    max: 64 * 1024,
    description: 'Longer QWP datagrams are dropped.',
  },
  'qwp.udp.msg.count': {
    type: 'integer',
    initial: '10000',
    min: 2,
    description:
      'Number of QWP datagrams that wait for their commit; further ones are dropped. Half of them are committed before their time. `qwp.groups.bytes.max` limits their bytes.',
  },
  'qwp.udp.receive.buffer.size': {
    type: 'integer',
    initial: '-1',
    min: -1,
    max: 1024 ** 3,
    description: "Bytes of the system's buffer for received QWP datagrams; -1: as the system likes.",
  },
  'qwp.symbols.bytes.max': {
    type: 'size',
    initial: '256m',
    min: MIB,
    description: 'Memory for the symbol dictionaries of QWP connections, over all of them.',
  },
} as const satisfies SettingsTable
