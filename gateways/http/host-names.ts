// Under which name a request calls this server. A page of another site can have its own name lead to the address of this
// server, and is then, to the browser, a page of this server (DNS rebinding). Only the name that it calls gives it away.
//
// An address or a name that no stranger can own is always good: no page of another site has it.

/** Names of the machine and of networks of one's own; a name without a dot is none that can be bought. */
const ownNames = /^[^.]+\.?$|\.(localhost|local|internal|lan|home\.arpa|test)\.?$/

/** `host` as the request's header has it; `known` are names that settings add, in lower case. */
export function isKnownHost(host: string | undefined, known: readonly string[]): boolean {
  // Tools that say nothing are no browsers.
  if (host === undefined || host === '') return true
  const name = host.replace(/:\d*$/, '').toLowerCase()
  return isAddress(name) || ownNames.test(name) || known.includes(name)
}

function isAddress(name: string): boolean {
  return /^\[[0-9a-f:.%]+\]$/.test(name) || /^\d{1,3}(\.\d{1,3}){3}$/.test(name)
}
