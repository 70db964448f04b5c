// Resolves the file names of COPY and read_parquet() within the import and export directories. A name cannot escape
// its directory by `..` or a link, and must refer to a regular file: reading a pipe or device might never end.

import { type Dirent, readdirSync, realpathSync, statSync } from 'node:fs'
import { join, relative, resolve, sep } from 'node:path'
import { SqlError } from '../engine/base/errors.js'
import { matchesGlob } from '../engine/base/glob.js'

export interface CopyDirectories {
  readonly importRoot: string
  readonly exportRoot: string
  /** Directory for the temporary file of an import whose types may have to be widened. */
  readonly spool: string
}

/** A file name and its position in the statement. */
export interface NamedFile {
  readonly file: string
  readonly filePosition: number
}

/** Limit of files that one statement reads. */
const filesMax = 10_000

/**
 * Looks in the import directory, then in the export directory, so that exports can be read again. Throws SqlError.
 */
export function existingFile({ importRoot, exportRoot }: CopyDirectories, named: NamedFile): string {
  for (const root of [importRoot, exportRoot]) {
    const path = pathIn(root, named)
    const [real, home] = [realPath(path), realPath(root)]
    if (real === null || home === null) continue
    if (!real.startsWith(home + sep)) throw outside(named)
    if (!statSync(real).isFile()) throw new SqlError(`not a regular file [file=${named.file}]`, named.filePosition)
    return real
  }
  throw new SqlError(`file does not exist [file=${named.file}]`, named.filePosition)
}

/**
 * Returns the file of that name, or the files that match it as a pattern, sorted. Throws SqlError when there is
 * none.
 */
export function filesNamed(
  directories: CopyDirectories,
  named: NamedFile,
): readonly { readonly name: string; readonly path: string }[] {
  const { file, filePosition } = named
  pathIn(directories.importRoot, named)
  if (!/[*?[]/.test(file) || exists(directories, named)) return [{ name: file, path: existingFile(directories, named) }]
  const found = [directories.importRoot, directories.exportRoot].flatMap((root) =>
    filesBelow(root)
      .map((path) => ({ name: relative(root, path), path }))
      .filter(({ name }) => matchesGlob(name, file)),
  )
  const names = new Set<string>()
  const first = found.filter(({ name }) => !names.has(name) && names.add(name))
  if (first.length === 0) throw new SqlError(`no file matches the name [file=${file}]`, filePosition)
  if (first.length > filesMax)
    throw new SqlError(`more than ${filesMax} files match the name [file=${file}]`, filePosition)
  return first.sort((one, other) => (one.name < other.name ? -1 : 1))
}

function exists({ importRoot, exportRoot }: CopyDirectories, { file }: NamedFile): boolean {
  return [importRoot, exportRoot].some((root) => realPath(resolve(root, file)) !== null)
}

function realPath(path: string): string | null {
  try {
    return realpathSync(path)
  } catch {
    return null
  }
}

export function pathIn(root: string, named: NamedFile): string {
  const path = resolve(root, named.file)
  if (named.file === '' || named.file.includes('\0') || !path.startsWith(resolve(root) + sep)) throw outside(named)
  return path
}

export function outside({ file, filePosition }: NamedFile): SqlError {
  return new SqlError(`file name leads out of its directory [file=${file}]`, filePosition)
}

/** Lists the regular files below a directory, except links and hidden files. */
export function filesBelow(root: string): string[] {
  try {
    return readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry: Dirent) => entry.isFile() && !entry.name.startsWith('.'))
      .map((entry) => join(entry.parentPath, entry.name))
      .sort()
  } catch {
    return []
  }
}
