// Stores the preferences of the console and of clients: one versioned JSON object in a file that is replaced
// atomically.
//
// Clients read the preferences before they write, so an unreadable file must not fail their requests: the error is
// logged and the preferences are empty until the file can be read. The first change keeps a damaged file under
// another name.

import { readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { makeDirectories } from '../../engine/base/files.js'
import type { Log } from '../../engine/base/log.js'

export interface Preferences {
  readonly version: number
  readonly values: Readonly<Record<string, unknown>>
}

export class PreferencesConflict extends Error {
  constructor(current: number, expected: number) {
    super(`preferences view is out of date [currentVersion=${current}, expectedVersion=${expected}]`)
    this.name = 'PreferencesConflict'
  }
}

export class SettingsStore {
  readonly #path: string
  readonly #log: Log
  #preferences: Promise<Preferences> | null = null
  /** Why the last attempt to read the file failed. */
  #trouble: string | null = null
  /** Serialises changes. */
  #changing: Promise<unknown> = Promise.resolve()

  constructor(path: string, log: Log) {
    this.#path = path
    this.#log = log
  }

  read(): Promise<Preferences> {
    this.#preferences ??= this.#load()
    return this.#preferences
  }

  /** Replaces or merges the values. Rejects with PreferencesConflict when `expected` is not the current version. */
  change(expected: number, values: Readonly<Record<string, unknown>>, merge: boolean): Promise<void> {
    const changed = this.#changing.then(() => this.#change(expected, values, merge))
    this.#changing = changed.catch(() => {})
    return changed
  }

  async #change(expected: number, values: Readonly<Record<string, unknown>>, merge: boolean): Promise<void> {
    const current = await this.read()
    if (current.version !== expected) throw new PreferencesConflict(current.version, expected)
    const next = { version: current.version + 1, values: merge ? { ...current.values, ...values } : values }
    const aside = `${this.#path}.new`
    makeDirectories(dirname(this.#path))
    if (this.#trouble !== null) await rename(this.#path, `${this.#path}.damaged`)
    await writeFile(aside, JSON.stringify(next), { flush: true })
    await rename(aside, this.#path)
    this.#preferences = Promise.resolve(next)
    this.#trouble = null
  }

  async #load(): Promise<Preferences> {
    try {
      const preferences = preferencesOf(JSON.parse(await readFile(this.#path, 'utf8')))
      this.#trouble = null
      return preferences
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
        this.#trouble = null
        return { version: 0, values: {} }
      }
      this.#report(error instanceof Error ? error.message : String(error))
      // The next read tries again.
      this.#preferences = null
      return { version: 0, values: {} }
    }
  }

  /** Logs each error once, not once per request. */
  #report(trouble: string): void {
    if (trouble === this.#trouble) return
    this.#trouble = trouble
    this.#log(
      'E',
      'http',
      `preferences cannot be read; none are in effect until the file is repaired [file=${this.#path}, error=${trouble}]`,
    )
  }
}

/** Throws when the value is not a preferences object. */
function preferencesOf(value: unknown): Preferences {
  const { version, values } = (value ?? {}) as Partial<Preferences>
  const isVersion = typeof version === 'number' && Number.isSafeInteger(version) && version >= 0
  if (!isVersion || typeof values !== 'object' || values === null || Array.isArray(values)) {
    throw new Error('the file contains no preferences')
  }
  return { version, values }
}
