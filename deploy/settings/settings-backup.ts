// Table of the settings of BACKUP. Included in settings-table.ts.

import type { SettingsTable } from './setting-row.js'

export const backupSettings = {
  'backup.object.store': {
    reload: true,
    type: 'words',
    initial: '',
    description:
      'Where BACKUP writes: a folder as `file:///path`, or `s3://bucket/prefix` of the service that `object.store.s3.*` describes. Empty: BACKUP is refused.',
  },
  'backup.cleanup.keep.latest.n': {
    reload: true,
    type: 'integer',
    initial: '5',
    min: 1,
    description: 'Backups that an object store keeps; older ones are removed after a backup. A folder has one.',
  },
} as const satisfies SettingsTable
