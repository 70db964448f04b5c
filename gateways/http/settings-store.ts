// Preferences of the console and of clients: one JSON object with a version, in a file that is replaced as a whole.

import { readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { makeDirectories } from '../../engine/base/files.js'

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
  #preferences: Promise<Preferences> | null = null
  /** Changes follow each other. */
  #changing: Promise<unknown> = Promise.resolve()

  constructor(path: string) {
    this.#path = path
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
    await writeFile(aside, JSON.stringify(next), { flush: true })
    await rename(aside, this.#path)
    this.#preferences = Promise.resolve(next)
  }

  async #load(): Promise<Preferences> {
    try {
      const { version, values } = JSON.parse(await readFile(this.#path, 'utf8')) as Preferences
      return { version, values }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { version: 0, values: {} }
      throw error
    }
  }
}
