// Preferences of the console and of clients: one JSON object with a version, in a file that is replaced as a whole.
//
// Clients ask for them before they write, so a file that cannot be read must not turn them away: it is logged, and there
// are no preferences until it can. The first change keeps a damaged file under another name.

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
  /** Why the file could not be read at the last attempt. */
  #trouble: string | null = null
  /** Changes follow each other. */
  #changing: Promise<unknown> = Promise.resolve()

  constructor(path: string, log: Log) {
    this.#path = path
    this.#log = log
  }

  read(): Promise<Preferences> {
    this.#preferences ??= this.#load()
    return this.#preferences
  }

  /** Replaces the values, or adds to them. Rejects with PreferencesConflict when the client has not seen the last ones. */
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
      this.#tell(error instanceof Error ? error.message : String(error))
      // The next one who asks tries again.
      this.#preferences = null
      return { version: 0, values: {} }
    }
  }

  /** Once for each trouble, not for each client that asks. */
  #tell(trouble: string): void {
    if (trouble === this.#trouble) return
    this.#trouble = trouble
    this.#log(
      'E',
      'http',
      `preferences cannot be read, there are none until they can [file=${this.#path}, error=${trouble}]`,
    )
  }
}

/** Throws when it is something else. */
function preferencesOf(value: unknown): Preferences {
  const { version, values } = (value ?? {}) as Partial<Preferences>
  const isVersion = typeof version === 'number' && Number.isSafeInteger(version) && version >= 0
  if (!isVersion || typeof values !== 'object' || values === null || Array.isArray(values)) {
    throw new Error('the file holds no preferences')
  }
  return { version, values }
}
