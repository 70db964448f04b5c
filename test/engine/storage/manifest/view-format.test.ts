// Goal: the first materialized view raises the format of the manifest durably, so that servers that do not know views
// refuse the root; a root without one keeps the plain format.

import { expect, test } from 'vitest'
import type { Files } from '../../../../engine/base/files.js'
import { Manifest } from '../../../../engine/storage/manifest/manifest.js'
import { formats } from '../../../../engine/storage/manifest/manifest-format.js'
import { createFaultyDisk } from '../../../support/faulty-files.js'

const directory = '/db/manifest'

function formatOf(files: Files): number {
  const name = files.list(directory).find((path) => path.startsWith('manifest-')) ?? ''
  const file = files.open(`${directory}/${name}`, 'read')
  const header = Buffer.alloc(16)
  file.read(header, 0)
  file.close()
  return header.readUInt32LE(4)
}

test('the format rises once and stays', () => {
  const disk = createFaultyDisk(1)
  const { files } = disk
  files.makeDirectory('/db')
  files.syncDirectory('/')
  const options = { files, directory, log: () => {} }
  const first = Manifest.open(options)
  expect(formatOf(files)).toBe(formats.plain)
  first.demandFormat(formats.materializedViews)
  expect(formatOf(files)).toBe(formats.materializedViews)
  disk.crash(7)
  const second = Manifest.open(options)
  expect(formatOf(files)).toBe(formats.materializedViews)
  second.commit([{ kind: 'ids', table: 5 }])
  second.checkpoint()
  second.close()
  expect(formatOf(files)).toBe(formats.materializedViews)
})
