// Virtual tables over the files of COPY: import_files(), export_files(), files('folder'), glob('pattern'); and over the
// rows of Parquet files and of other programs' Iceberg tables: read_parquet('file or pattern'), iceberg('table'). A
// name is a file in one of the two directories of COPY, as COPY accepts it, or an object in object storage,
// `s3://bucket/key` or a path in its folder; an import also reads its uploaded Parquet file in this way. Other files
// cannot be read.

import { statSync } from 'node:fs'
import { relative, resolve, sep } from 'node:path'
import { matchesGlob } from '../engine/base/glob.js'
import type { VirtualRelation } from '../engine/engine.js'
import { filesBelow, filesNamed, type ReadDirectories } from './copy-paths.js'
import type { IcebergTables } from './iceberg-tables.js'
import type { ParquetUploads } from './parquet-uploads.js'
import { RemoteFiles } from './remote-files.js'

export function copyRelations(
  directories: ReadDirectories,
  remote: RemoteFiles | null = null,
  tables: IcebergTables | null = null,
  uploads: ParquetUploads | null = null,
): VirtualRelation[] {
  const { importRoot, exportRoot } = directories
  const both = (): string[] => [...new Set([...filesBelow(importRoot), ...filesBelow(exportRoot)])]
  const nameOf = (path: string): string => relative(path.startsWith(importRoot + sep) ? importRoot : exportRoot, path)
  return [
    { name: 'import_files', columns, rows: () => filesBelow(importRoot).map((path) => fileRow(path, nameOf(path))) },
    { name: 'export_files', columns, rows: () => filesBelow(exportRoot).map((path) => fileRow(path, nameOf(path))) },
    {
      name: 'files',
      columns,
      takesText: true,
      rows: (folder = '') =>
        [importRoot, exportRoot].flatMap((root) => {
          const inside = resolve(root, folder)
          const isHere = inside === resolve(root) || inside.startsWith(resolve(root) + sep)
          return isHere ? filesBelow(inside).map((path) => fileRow(path, relative(inside, path))) : []
        }),
    },
    {
      name: 'glob',
      columns,
      takesText: true,
      rows: (pattern = '') =>
        both()
          .filter((path) => matchesGlob(nameOf(path), pattern))
          .map((path) => fileRow(path, nameOf(path))),
    },
    {
      name: 'read_parquet',
      columns: [],
      takesText: true,
      rows: () => [],
      files: (file, position) => {
        const uploaded = uploads?.pathOf(file)
        if (uploaded !== undefined) return [{ name: file, path: uploaded, position }]
        const isRemote = remote !== null && RemoteFiles.isRemote(file)
        const found = isRemote
          ? remote.named(file, position)
          : filesNamed(directories, { file, filePosition: position })
        return found.map((one) => ({ ...one, position }))
      },
    },
    ...(tables === null
      ? []
      : [
          {
            name: 'iceberg',
            columns: [],
            takesText: true as const,
            rows: () => [],
            table: (name: string, position: number) => tables.named(name, position),
          },
        ]),
  ]
}

const columns: VirtualRelation['columns'] = [
  { name: 'path', type: 'VARCHAR' },
  { name: 'diskSize', type: 'LONG' },
  { name: 'diskSizeHuman', type: 'STRING' },
  { name: 'modifiedTime', type: 'DATE' },
]

function fileRow(path: string, name: string): ReturnType<VirtualRelation['rows']>[number] {
  const { size, mtimeMs } = statSync(path)
  return [name, BigInt(size), humanSize(size), BigInt(Math.floor(mtimeMs))]
}

function humanSize(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const unit = bytes === 0 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10))
  return `${(bytes / 1024 ** unit).toFixed(1)} ${units[unit] ?? ''}`
}
