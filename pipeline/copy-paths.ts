// Resolves the file names of COPY, read_parquet() and iceberg() within the import and export directories. The two
// functions also read the object store's folder if it has one, whose files are named by absolute paths. A name cannot
// escape its directory by `..` or a link, and must refer to a regular file: reading a pipe or device might never end.

import { type Dirent, readdirSync, realpathSync, statSync } from 'node:fs'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { SqlError } from '../engine/base/errors.js'
import { matchesGlob } from '../engine/base/glob.js'

export interface CopyDirectories {
  readonly importRoot: string
  readonly exportRoot: string
  /** Directory for the temporary file of an import whose types may have to be widened. */
  readonly spool: string
}

/** The directories that a statement may read. */
export interface ReadDirectories extends Pick<CopyDirectories, 'importRoot' | 'exportRoot'> {
  /** Of the object store; null or absent: it is none. */
  readonly storeRoot?: string | null
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
export function existingFile(directories: ReadDirectories, named: NamedFile): string {
  for (const root of rootsOf(directories, named)) {
    const real = realPathIn(root, named)
    if (real === null) continue
    if (!statSync(real).isFile()) throw new SqlError(`not a regular file [file=${named.file}]`, named.filePosition)
    return real
  }
  throw new SqlError(`file does not exist [file=${named.file}]`, named.filePosition)
}

/** Names of the files in a folder, which need not exist. Throws SqlError. */
export function fileNamesIn(directories: ReadDirectories, folder: NamedFile): string[] {
  return rootsOf(directories, folder).flatMap((root) => {
    const real = realPathIn(root, folder)
    if (real === null || !statSync(real).isDirectory()) return []
    return readdirSync(real)
  })
}

/**
 * Returns the file of that name, or the files that match it as a pattern, sorted. Throws SqlError when there is
 * none.
 */
export function filesNamed(
  directories: ReadDirectories,
  named: NamedFile,
): readonly { readonly name: string; readonly path: string }[] {
  const { file, filePosition } = named
  const roots = rootsOf(directories, named)
  const isThere = roots.some((root) => realPath(resolve(root, file)) !== null)
  if (!/[*?[]/.test(file) || isThere) return [{ name: file, path: existingFile(directories, named) }]
  // The folder before the first wildcard.
  const fixed = dirname(`${file.slice(0, file.search(/[*?[]/))}.`)
  const found = roots
    .filter((root) => realPathIn(root, { ...named, file: fixed }) !== null)
    .flatMap((root) =>
      filesBelow(resolve(root, fixed))
        .map((path) => ({ name: isAbsolute(file) ? path : relative(root, path), path }))
        .filter(({ name }) => matchesGlob(name, file)),
    )
  const names = new Set<string>()
  const first = found.filter(({ name }) => !names.has(name) && names.add(name))
  if (first.length === 0) throw new SqlError(`no file matches the name [file=${file}]`, filePosition)
  if (first.length > filesMax)
    throw new SqlError(`more than ${filesMax} files match the name [file=${file}]`, filePosition)
  return first.sort((one, other) => (one.name < other.name ? -1 : 1))
}

/** The directories that the name may be in. Throws SqlError if it leads out of all of them. */
function rootsOf({ importRoot, exportRoot, storeRoot = null }: ReadDirectories, named: NamedFile): string[] {
  const store = storeRoot !== null && isAbsolute(named.file) ? [storeRoot] : []
  const roots = [importRoot, exportRoot, ...store].filter((root) => isIn(root, named.file))
  if (roots.length === 0) throw outside(named, 'copy.import.root')
  return roots
}

/** Null: there is nothing of the name. Throws SqlError for a link that leads out of the root. */
function realPathIn(root: string, named: NamedFile): string | null {
  const [real, home] = [realPath(resolve(root, named.file)), realPath(root)]
  if (real === null || home === null) return null
  if (real !== home && !real.startsWith(home + sep)) throw outside(named, 'copy.import.root')
  return real
}

function realPath(path: string): string | null {
  try {
    return realpathSync(path)
  } catch {
    return null
  }
}

/** The path of a file to be written. Throws SqlError. */
export function pathIn(root: string, named: NamedFile): string {
  if (!isIn(root, named.file)) throw outside(named, 'copy.export.root')
  return resolve(root, named.file)
}

function isIn(root: string, file: string): boolean {
  return file !== '' && !file.includes('\0') && resolve(root, file).startsWith(resolve(root) + sep)
}

/** `setting`: of the directory. */
export function outside({ file, filePosition }: NamedFile, setting: 'copy.import.root' | 'copy.export.root'): SqlError {
  return new SqlError(`file name leads out of its directory [file=${file}, setting=${setting}]`, filePosition)
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
