// Checks the Host header against DNS rebinding. A malicious page can make its own name resolve to this server, and
// the browser then treats this server as part of that page's site. Only the name in the Host header reveals it.
//
// IP addresses and names that nobody else can register are always accepted.

/** Names of the local machine and of private networks; a name without a dot cannot be registered. */
const ownNames = /^[^.]+\.?$|\.(localhost|local|internal|lan|home\.arpa|test)\.?$/

/** `host` is the Host header; `known` holds further names from the settings, in lower case. */
export function isKnownHost(host: string | undefined, known: readonly string[]): boolean {
  // Browsers always send a Host header.
  if (host === undefined || host === '') return true
  const name = host.replace(/:\d*$/, '').toLowerCase()
  return isAddress(name) || ownNames.test(name) || known.includes(name)
}

function isAddress(name: string): boolean {
  return /^\[[0-9a-f:.%]+\]$/.test(name) || /^\d{1,3}(\.\d{1,3}){3}$/.test(name)
}
