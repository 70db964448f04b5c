// The list of saved queries as data: reads it from the preferences that the server stores, adds and removes queries.
// saved-queries.ts has the user interface.

import { asList, asText, isObject } from './json.js'

export interface SavedQuery {
  readonly name: string
  readonly sql: string
  /** Who saved it. */
  readonly user: string
}

/** Its name among the preferences. */
export const savedKey = 'console.queries'

export function savedQueriesIn(values: Readonly<Record<string, unknown>>): SavedQuery[] {
  return asList(values[savedKey]).flatMap((entry) => {
    if (!isObject(entry)) return []
    const query = { name: asText(entry['name']), sql: asText(entry['sql']), user: asText(entry['user']) }
    return query.name === '' || query.sql === '' ? [] : [query]
  })
}

/** A name is unique among the queries of a user: saving it again replaces the query. */
export function withQuery(queries: readonly SavedQuery[], added: SavedQuery): SavedQuery[] {
  return [...withoutQuery(queries, added), added].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
}

export function withoutQuery(queries: readonly SavedQuery[], { name, user }: SavedQuery): SavedQuery[] {
  return queries.filter((query) => query.name !== name || query.user !== user)
}
