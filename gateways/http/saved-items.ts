// Stores what users of the console save in the server, queries and dashboards, in one file that is replaced atomically.
// An item belongs to its user; others see it if it is shared.
//
// Invariants:
//   1. Kind, name and user identify an item. Each change of it raises its version, and a change that names an older
//      version is rejected, so that nobody overwrites what they have not seen.
//   2. A file that cannot be read is never overwritten: changes are rejected until it has been repaired or moved away.
//
// Older versions of the console kept saved queries in the preferences. As long as the file does not exist, they are
// read from there, as shared items.

import { readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { makeDirectories } from '../../engine/base/files.js'
import type { Log } from '../../engine/base/log.js'
import { DashboardError, dashboardFrom } from '../common/dashboards.js'
import { givesSecret } from '../common/sql-text.js'

const savedKinds = ['query', 'dashboard'] as const
export type SavedKind = (typeof savedKinds)[number]

export interface SavedItem {
  readonly kind: SavedKind
  readonly name: string
  /** Whose it is. */
  readonly user: string
  readonly shared: boolean
  readonly version: number
  /** When it was changed, in ISO 8601. */
  readonly updated: string
  /** A statement, or the definition of a dashboard. */
  readonly content: unknown
}

/** What is wrong with an item or a change; the message is for its author. */
export class SavedItemError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'SavedItemError'
  }
}

export class SavedItemConflict extends SavedItemError {
  constructor(version: number) {
    super(`it was changed meanwhile; load it again [currentVersion=${version}]`)
    this.name = 'SavedItemConflict'
  }
}

const formatVersion = 1
const nameLengthMax = 100
const queryLengthMax = 100_000
const itemsOfUserMax = 1000
const fileBytesMax = 16 * 1024 * 1024
const members: readonly string[] = ['kind', 'name', 'shared', 'version', 'content']

export interface SavedChange {
  readonly item: Omit<SavedItem, 'version' | 'updated'>
  /** The version that the author has seen; 0: there was no such item; null: whatever it is. */
  readonly seen: number | null
}

/** Reads an item as clients send it. Throws SavedItemError. */
export function savedChangeFrom(value: unknown, user: string): SavedChange {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new SavedItemError('a saved item is a JSON object with kind, name, shared and content')
  const given = new Map<string, unknown>(Object.entries(value))
  for (const key of given.keys())
    if (!members.includes(key)) throw new SavedItemError(`unknown member of a saved item [name=${key}]`)
  const kind = savedKindFrom(given.get('kind'))
  const name = given.get('name')
  if (typeof name !== 'string' || name.trim() === '') throw new SavedItemError('a saved item needs a name')
  if (name.length > nameLengthMax) throw new SavedItemError(`the name is too long [max=${nameLengthMax}]`)
  const shared = given.get('shared') ?? false
  if (typeof shared !== 'boolean') throw new SavedItemError("'shared' is true or false")
  const seen = given.get('version') ?? null
  if (seen !== null && (typeof seen !== 'number' || !Number.isSafeInteger(seen)))
    throw new SavedItemError("'version' is a number")
  return { item: { kind, name: name.trim(), user, shared, content: contentFrom(kind, given.get('content')) }, seen }
}

export function savedKindFrom(value: unknown): SavedKind {
  const kind = savedKinds.find((each) => each === value)
  if (kind === undefined) throw new SavedItemError(`'kind' is one of ${savedKinds.join(', ')}`)
  return kind
}

function contentFrom(kind: SavedKind, content: unknown): unknown {
  if (kind === 'dashboard') {
    try {
      return dashboardFrom(content)
    } catch (thrown) {
      if (thrown instanceof DashboardError) throw new SavedItemError(thrown.message)
      throw thrown
    }
  }
  if (typeof content !== 'string' || content.trim() === '') throw new SavedItemError('a saved query needs a statement')
  if (content.length > queryLengthMax) throw new SavedItemError(`the statement is too long [max=${queryLengthMax}]`)
  if (givesSecret(content)) throw new SavedItemError('the statement may contain a secret, and is not saved')
  return content
}

export class SavedItems {
  readonly #path: string
  readonly #log: Log
  /** The preferences, where saved queries were before. */
  readonly #preferences: () => Promise<Readonly<Record<string, unknown>>>
  #items: Promise<readonly SavedItem[]> | null = null
  /** Why the last attempt to read the file failed. */
  #trouble: string | null = null
  /** Serialises changes. */
  #changing: Promise<unknown> = Promise.resolve()

  constructor(path: string, log: Log, preferences: () => Promise<Readonly<Record<string, unknown>>>) {
    this.#path = path
    this.#log = log
    this.#preferences = preferences
  }

  /** Those of a kind that a user may see, by name. */
  async visible(kind: SavedKind, user: string): Promise<SavedItem[]> {
    const items = await this.#read()
    return items.filter((item) => item.kind === kind && (item.shared || item.user === user)).sort(byName)
  }

  /** Adds or replaces an item; resolves with its version. */
  store({ item, seen }: SavedChange, updated: string): Promise<number> {
    return this.#change(async (items) => {
      const stored = items.find(isSame(item))
      const current = stored?.version ?? 0
      if (seen !== null && seen !== current) throw new SavedItemConflict(current)
      const others = items.filter((each) => each !== stored)
      if (others.filter(({ user }) => user === item.user).length >= itemsOfUserMax)
        throw new SavedItemError(`the user has too many saved items [max=${itemsOfUserMax}]`)
      await this.#write([...others, { ...item, version: current + 1, updated }])
      return current + 1
    })
  }

  /** Whether there was one. */
  remove(item: Pick<SavedItem, 'kind' | 'name' | 'user'>): Promise<boolean> {
    return this.#change(async (items) => {
      const others = items.filter((each) => !isSame(item)(each))
      if (others.length === items.length) return false
      await this.#write(others)
      return true
    })
  }

  #change<Result>(work: (items: readonly SavedItem[]) => Promise<Result>): Promise<Result> {
    const changed = this.#changing.then(async () => {
      const items = await this.#read()
      if (this.#trouble !== null)
        throw new SavedItemError(`the file of saved items cannot be read, see the log [error=${this.#trouble}]`)
      return work(items)
    })
    this.#changing = changed.catch(() => {})
    return changed
  }

  async #write(items: readonly SavedItem[]): Promise<void> {
    const text = JSON.stringify({ version: formatVersion, items })
    if (Buffer.byteLength(text) > fileBytesMax)
      throw new SavedItemError(`the saved items of all users are too long [maxBytes=${fileBytesMax}]`)
    makeDirectories(dirname(this.#path))
    await writeFile(`${this.#path}.new`, text, { flush: true })
    await rename(`${this.#path}.new`, this.#path)
    this.#items = Promise.resolve(items)
  }

  #read(): Promise<readonly SavedItem[]> {
    this.#items ??= this.#load()
    return this.#items
  }

  async #load(): Promise<readonly SavedItem[]> {
    try {
      const items = itemsIn(JSON.parse(await readFile(this.#path, 'utf8')))
      this.#trouble = null
      return items
    } catch (thrown) {
      if (thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT') {
        this.#trouble = null
        return queriesIn(await this.#preferences())
      }
      this.#report(thrown instanceof Error ? thrown.message : String(thrown))
      // The next read tries again.
      this.#items = null
      return []
    }
  }

  /** Logs each error once, not once per request. */
  #report(trouble: string): void {
    if (trouble === this.#trouble) return
    this.#trouble = trouble
    const place = `[file=${this.#path}, error=${trouble}]`
    this.#log('E', 'http', `saved queries and dashboards cannot be read; repair the file, or move it away ${place}`)
  }
}

function isSame({ kind, name, user }: Pick<SavedItem, 'kind' | 'name' | 'user'>): (item: SavedItem) => boolean {
  return (item) => item.kind === kind && item.name === name && item.user === user
}

function byName(a: SavedItem, b: SavedItem): number {
  const [x, y] = [`${a.name}\n${a.user}`, `${b.name}\n${b.user}`]
  return x < y ? -1 : x > y ? 1 : 0
}

/** Throws when the value is not what `#write` has written. */
function itemsIn(value: unknown): SavedItem[] {
  if (typeof value !== 'object' || value === null || !('version' in value) || !('items' in value))
    throw new Error('the file contains no saved items')
  const { version, items } = value
  if (version !== formatVersion) throw new Error(`another version wrote the file [format=${String(version)}]`)
  if (!Array.isArray(items)) throw new Error('the file contains no list of items')
  return items.map((item: unknown) => {
    const given = new Map<string, unknown>(Object.entries(item ?? {}))
    const name = given.get('name')
    if (typeof name !== 'string') throw new Error('an item has no name')
    return {
      ...{ kind: savedKindFrom(given.get('kind')), name, user: String(given.get('user')) },
      ...{ shared: given.get('shared') === true, version: Number(given.get('version')) },
      ...{ updated: String(given.get('updated')), content: given.get('content') },
    }
  })
}

/** Saved queries of earlier versions; what is none is left out. */
function queriesIn(preferences: Readonly<Record<string, unknown>>): SavedItem[] {
  const list = preferences['console.queries']
  return (Array.isArray(list) ? list : []).flatMap((entry: unknown) => {
    if (typeof entry !== 'object' || entry === null || !('name' in entry) || !('sql' in entry)) return []
    const user = 'user' in entry ? String(entry.user) : ''
    try {
      const { item } = savedChangeFrom({ kind: 'query', name: entry.name, shared: true, content: entry.sql }, user)
      return [{ ...item, version: 1, updated: '' }]
    } catch {
      return []
    }
  })
}
