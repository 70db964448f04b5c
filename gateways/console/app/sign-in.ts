// Sign-in and sign-out of the console: the dialog, and the menu with the user's name and rights. The server keeps the
// user signed in by a cookie that scripts cannot read. The password is in memory only while it is sent.

import { onSignIn, request } from './api.js'
import { button, byId, element } from './dom.js'
import { asText, isObject, objectIn } from './json.js'

interface Identity {
  /** Empty: not signed in, and the server requires it. */
  readonly user: string
  readonly rights: readonly string[]
  /** By the cookie, and not because the server is open to everybody. */
  readonly signedIn: boolean
  readonly expires: string
}

const sessionPath = 'session'

/** `changed`: called after a sign-in. */
export async function openSignIn(changed: () => void): Promise<void> {
  const menu = byId('who', HTMLElement)
  const paint = async (): Promise<void> => paintMenu(menu, await whoAmI())
  onSignIn(async (reason) => {
    const succeeded = await askToSignIn(reason)
    if (succeeded) {
      void paint()
      changed()
    }
    return succeeded
  })
  await paint()
}

async function whoAmI(): Promise<Identity> {
  const response = await request(sessionPath)
  const { user, rights, signedIn, expires } = objectIn(await response.text())
  const granted = isObject(rights) ? Object.keys(rights).filter((right) => rights[right] === true) : []
  return { user: asText(user), rights: granted, signedIn: signedIn === true, expires: asText(expires) }
}

/** Empty: signed in; else why not. */
async function signIn(user: string, password: string): Promise<string> {
  const headers = { 'content-type': 'application/json' }
  const response = await request(sessionPath, { method: 'POST', headers, body: JSON.stringify({ user, password }) })
  if (response.ok) return ''
  return asText(objectIn(await response.text())['error'], `the server answered ${response.status}`)
}

function paintMenu(menu: HTMLElement, { user, rights, signedIn, expires }: Identity): void {
  const name = byId('who-name', HTMLElement)
  name.textContent = user === '' ? 'Sign in' : user
  const list = element('div', { className: 'menu-list' })
  if (user !== '') {
    const about = rights.length === 0 ? 'no rights' : rights.join(', ')
    list.append(
      element('p', {}, element('strong', {}, user), element('br'), element('span', { className: 'quiet' }, about)),
    )
  }
  if (user !== '' && !signedIn) list.append(element('p', { className: 'quiet' }, 'This server is open to everybody.'))
  if (expires !== '')
    list.append(element('p', { className: 'quiet' }, `Signed in until ${expires.slice(0, 16).replace('T', ' ')} UTC`))
  const signOut = async (): Promise<void> => {
    await request(sessionPath, { method: 'DELETE' })
    location.reload()
  }
  const enter = async (): Promise<void> => {
    if (await askToSignIn('Sign in with a name and a password.')) location.reload()
  }
  list.append(signedIn ? button('Sign out', () => void signOut()) : button('Sign in …', () => void enter()))
  menu.querySelector('.menu-list')?.remove()
  menu.append(list)
}

/** Resolves with whether the user signed in. */
function askToSignIn(reason: string): Promise<boolean> {
  const dialog = byId('sign-in', HTMLDialogElement)
  const form = byId('sign-in-form', HTMLFormElement)
  const [user, password] = [byId('sign-in-user', HTMLInputElement), byId('sign-in-password', HTMLInputElement)]
  const note = byId('sign-in-note', HTMLElement)
  note.textContent = reason
  note.className = 'quiet'
  password.value = ''
  return new Promise((resolve) => {
    const submit = async (event: Event): Promise<void> => {
      event.preventDefault()
      const problem = await signIn(user.value, password.value)
      password.value = ''
      if (problem === '') return finish(true)
      note.textContent = problem
      note.className = 'problem'
      password.focus()
    }
    const submitted = (event: Event): void => void submit(event)
    const cancelled = (): void => finish(false)
    const finish = (succeeded: boolean): void => {
      form.removeEventListener('submit', submitted)
      dialog.removeEventListener('close', cancelled)
      dialog.close()
      resolve(succeeded)
    }
    form.addEventListener('submit', submitted)
    dialog.addEventListener('close', cancelled)
    byId('sign-in-cancel', HTMLButtonElement).onclick = cancelled
    dialog.showModal()
  })
}
