// The view of dashboards: their list, or the one that the URL names.

import { dashboardFrom } from '../../common/dashboards.js'
import { removeItem, type SavedItem, savedItems, storeItem } from '../app/api.js'
import { button, byId, element, errorText, notify } from '../app/dom.js'
import type { Schema } from '../app/schema.js'
import { plainTable } from '../app/table-details.js'
import { type Address, addressFrom, hashOf } from './dashboard-address.js'
import { openDashboardForm } from './dashboard-form.js'
import { type DashboardOptions, type DashboardState, DashboardView } from './dashboard-view.js'
import { exampleDashboard, exampleName } from './example.js'

const confirmMs = 4000

export class DashboardsPage {
  readonly #host = byId('dashboards', HTMLElement)
  readonly #options: DashboardOptions
  readonly #schema: Schema
  #me = ''
  #open: DashboardView | null = null
  /** Counts calls of `show`, because a later one may overtake an earlier one. */
  #shows = 0

  constructor(schema: Schema, openQuery: (sql: string) => void) {
    this.#schema = schema
    const renamed = async (before: string): Promise<void> => removeItem('dashboard', before, this.#me)
    this.#options = { schema, openQuery, renamed, me: () => this.#me }
    document.addEventListener('visibilitychange', () => {
      if (document.visibilityState === 'visible') this.#open?.wake()
    })
    window.addEventListener('beforeunload', (event) => {
      if (this.#open?.isChanged === true) event.preventDefault()
    })
  }

  /** Shows what the URL names. */
  async show(hash: string): Promise<void> {
    const turn = ++this.#shows
    const address = addressFrom(hash)
    const open = this.#open
    const isOpen = open !== null && address !== null && isOf(open.item, address)
    if (isOpen && (open.isChanged || this.#host.contains(open.host))) {
      if (!this.#host.contains(open.host)) this.#host.replaceChildren(open.host)
      return open.start(address)
    }
    open?.stop()
    try {
      const { user, items } = await savedItems('dashboard')
      if (turn !== this.#shows) return
      this.#me = user
      if (address === null) this.#paintList(items)
      else this.#openItem(items, address)
    } catch (error) {
      if (turn !== this.#shows) return
      this.#host.replaceChildren(element('p', { className: 'problem', role: 'alert' }, errorText(error)))
    }
  }

  /** Nobody sees it any more: nothing is refreshed. */
  hide(): void {
    this.#shows++
    this.#open?.stop()
  }

  #openItem(items: readonly SavedItem[], address: Address): void {
    const item = items.find((each) => isOf(each, address))
    if (item === undefined) {
      throw new Error(`There is no dashboard ${address.name} of ${address.user}, or it is not shared with you.`)
    }
    const state = { item, definition: dashboardFrom(item.content), isOwn: item.user === this.#me }
    this.#begin(state, address)
  }

  #begin(state: DashboardState, address: Address): void {
    if (this.#open?.isChanged === true) notify(`The changes of ${this.#open.item.name} were not saved.`)
    this.#open?.stop()
    this.#open = new DashboardView(state, address, this.#options)
    this.#host.replaceChildren(this.#open.host)
    this.#open.start(address)
  }

  /** Saves a new dashboard and opens it. */
  #create(name: string, definition: DashboardState['definition']): void {
    openDashboardForm({ name, shared: false, definition }, async (changed) => {
      try {
        const { name: chosen, shared, definition: content } = changed
        await storeItem({ kind: 'dashboard', name: chosen, shared, version: 0, content })
        location.hash = hashOf({ ...emptyAddress, name: chosen, user: this.#me })
      } catch (error) {
        notify(`The dashboard is not saved: ${errorText(error)}`)
      }
    })
  }

  #paintList(items: readonly SavedItem[]): void {
    const rows = items.map((item) => {
      const { name, user, shared } = item
      const link = element('a', { href: hashOf({ ...emptyAddress, name, user }) }, name)
      const who = user === this.#me ? (shared ? 'you, shared' : 'you, private') : user
      return [link, who, this.#removeButton(item)]
    })
    const hasSample = this.#schema.tables.some(({ name }) => name === 'readings')
    const example = button('Example over the sample data', () => this.#create(exampleName, exampleDashboard()))
    const unsaved = this.#open?.isChanged === true ? this.#open.item : null
    const draft = unsaved === null ? [] : [element('p', { className: 'warning' }, 'Not saved: ', draftLink(unsaved))]
    const none = element(
      'p',
      { className: 'quiet' },
      'None yet. A dashboard has panels with a query each, variables and a time range; it is kept in the server.',
    )
    this.#host.replaceChildren(
      element('h2', {}, 'Dashboards'),
      ...draft,
      rows.length === 0 ? none : plainTable(['Name', 'Owner', ''], rows, new Set()),
      element(
        'div',
        { className: 'bar' },
        button('New dashboard', () => this.#create('', dashboardFrom({})), { className: 'main' }),
        hasSample ? example : null,
      ),
    )
  }

  /** It must be pressed twice. */
  #removeButton({ name, user }: SavedItem): HTMLElement {
    const made = button('Remove', () => {
      if (made.textContent === 'Remove') {
        made.textContent = 'Remove for good'
        setTimeout(() => {
          made.textContent = 'Remove'
        }, confirmMs)
        return
      }
      removeItem('dashboard', name, user)
        .then(() => this.show('#dashboards'))
        .catch((error: unknown) => notify(errorText(error)))
    })
    made.title = `Remove ${name}`
    return made
  }
}

const emptyAddress: Address = { name: '', user: '', range: null, refresh: null, values: new Map() }

function isOf({ name, user }: Pick<SavedItem, 'name' | 'user'>, address: Address): boolean {
  return name === address.name && user === address.user
}

function draftLink({ name, user }: Pick<SavedItem, 'name' | 'user'>): HTMLElement {
  return element('a', { href: hashOf({ ...emptyAddress, name, user }) }, name)
}
