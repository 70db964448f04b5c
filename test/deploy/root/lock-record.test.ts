// Goal: a lock file of a root folder counts as that of a dead process only if its record, or what the system says about
// it, proves that: the process is gone, the kernel's lock of the folder is free, nobody listens on the socket, the
// machine has restarted, or the folder is a copy. Otherwise the state is alive or unknown, for example if the record is
// from another machine. A record is read as it was written.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Holder, judge, ownRecord, parseRecord } from '../../../deploy/root/lock-record.js'

const root = mkdtempSync(join(tmpdir(), 'penstock-record-'))
const own = ownRecord(statSync(root, { bigint: true }), 'server', '77')
const dead = spawnSync(process.execPath, ['-e', '']).pid
const elsewhere = { networkNamespace: 'net:[1]' }
const hidden = { ...elsewhere, pidNamespace: 'pid:[1]' }

function judgement(changes: Partial<Holder>, { excluded = true, deaf = false, folder = root } = {}) {
  return judge({ ...own, ...changes }, own, { root: folder, excluded, isSocketDeaf: (inode) => deaf && inode === '77' })
}

test('a record is read as it was written', () => {
  expect(parseRecord(JSON.stringify(own))).toEqual(own)
  for (const text of ['', '{', 'null', '7', '{"pid":1}', JSON.stringify(own).slice(0, 50)]) {
    expect(parseRecord(text)).toBe(null)
  }
})

test.runIf(process.platform === 'linux').each([
  // Who has the kernel's name of the folder knows that nobody of the same network namespace has it.
  ['of this network namespace', {}, {}, 'dead'],
  ['of another, a living process', elsewhere, {}, 'alive'],
  ['of another, an ended process', { ...elsewhere, pid: dead }, {}, 'dead'],
  ['of another, a later process of that number', { ...elsewhere, started: '1' }, {}, 'dead'],
  ['whose processes are not to be seen', hidden, {}, 'unknown'],
  ['whose processes are not to be seen, but its socket', hidden, { deaf: true }, 'dead'],
  ['whose socket was removed', { ...hidden, socket: null }, { deaf: true }, 'unknown'],
  ['of an earlier boot of this machine', { boot: 'another' }, {}, 'dead'],
  ['of another machine, on a file system that may be shared', { boot: 'another' }, { folder: '/proc' }, 'unknown'],
  ['of the folder that this one is a copy of', { inode: '1', ...elsewhere }, {}, 'dead'],
  [
    'of a folder with other numbers, on a file system that may be shared',
    { inode: '1', ...hidden },
    { folder: '/proc' },
    'unknown',
  ],
  ['without a name of the kernel', {}, { excluded: false }, 'alive'],
] as const)('a holder %s', (_name, changes, options, expected) => {
  expect(judgement(changes, options)).toBe(expected)
})
