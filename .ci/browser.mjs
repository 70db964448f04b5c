// Controls Chromium without a window, through its debugging protocol: one page, real key presses and clicks,
// screenshots. `complaints` collects the errors that the page reports: exceptions, violations of its
// Content-Security-Policy, and files that are missing.

import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WebSocket } from 'undici'

const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--remote-debugging-port=0']
const attemptMs = 100
const attempts = 600

const keys = {
  Enter: { code: 'Enter', windowsVirtualKeyCode: 13, text: '\r' },
  Escape: { code: 'Escape', windowsVirtualKeyCode: 27 },
  Delete: { code: 'Delete', windowsVirtualKeyCode: 46 },
  Tab: { code: 'Tab', windowsVirtualKeyCode: 9 },
  F6: { code: 'F6', windowsVirtualKeyCode: 117 },
  ArrowUp: { code: 'ArrowUp', windowsVirtualKeyCode: 38 },
  ArrowDown: { code: 'ArrowDown', windowsVirtualKeyCode: 40 },
  ArrowLeft: { code: 'ArrowLeft', windowsVirtualKeyCode: 37 },
  ArrowRight: { code: 'ArrowRight', windowsVirtualKeyCode: 39 },
  Home: { code: 'Home', windowsVirtualKeyCode: 36 },
  End: { code: 'End', windowsVirtualKeyCode: 35 },
  ' ': { code: 'Space', windowsVirtualKeyCode: 32, text: ' ' },
}
const modifiers = { Alt: 1, Control: 2, Meta: 4, Shift: 8 }

/** Runs in the page: the middle of an element, or null while it is hidden, covered, or moves from frame to frame. */
async function middleIfStill(found) {
  if (!(found?.getClientRects().length > 0)) return null
  found.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  const before = found.getBoundingClientRect()
  await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))
  const { left, top, width, height } = found.getBoundingClientRect()
  if (before.left !== left || before.top !== top || before.width !== width || before.height !== height) return null
  const middle = { x: left + width / 2, y: top + height / 2 }
  const hit = document.elementFromPoint(middle.x, middle.y)
  return found.contains(hit) || hit?.contains(found) ? middle : null
}

/** `expected`: a regular expression for addresses whose failures the walk causes. */
export async function openBrowser(screenshots, expected) {
  const profile = mkdtempSync(join(tmpdir(), 'penstock-chromium-'))
  const process = spawn(globalThis.process.env.CHROMIUM ?? 'chromium', [
    ...flags,
    `--user-data-dir=${profile}`,
    'about:blank',
  ])
  mkdirSync(screenshots, { recursive: true })
  const page = new Page(profile, screenshots)
  page.close = async () => {
    process.kill('SIGKILL')
    await new Promise((resolve) => setTimeout(resolve, 200))
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
  }
  try {
    await page.attach(await debuggerUrl(process), expected)
  } catch (error) {
    await page.close()
    throw error
  }
  return page
}

async function debuggerUrl(process) {
  let text = ''
  for await (const chunk of process.stderr) {
    text += chunk
    const match = /DevTools listening on (ws:\S+)/.exec(text)
    if (match !== null) {
      process.stderr.resume()
      return match[1]
    }
  }
  throw new Error(`the browser did not start: ${text}`)
}

class Page {
  complaints = []
  profile
  #screenshots
  #send

  constructor(profile, screenshots) {
    this.profile = profile
    this.#screenshots = screenshots
  }

  async attach(url, expected) {
    const socket = new WebSocket(url)
    await new Promise((resolve, reject) => {
      socket.onopen = resolve
      socket.onerror = () => reject(new Error('the browser takes no commands'))
    })
    const waiting = new Map()
    let lastId = 0
    let session
    socket.onmessage = ({ data }) => {
      const { id, method, params, result, error } = JSON.parse(data)
      if (id !== undefined) waiting.get(id)?.(error === undefined ? result : { error })
      else if (method === 'Runtime.exceptionThrown')
        this.complaints.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text)
      else if (method === 'Log.entryAdded' && params.entry.level === 'error' && !expected.test(params.entry.url ?? ''))
        this.complaints.push(`${params.entry.text} ${params.entry.url ?? ''}`)
    }
    this.#send = (method, params = {}) =>
      new Promise((resolve) => {
        const id = ++lastId
        waiting.set(id, resolve)
        socket.send(JSON.stringify({ id, method, params, ...(session === undefined ? {} : { sessionId: session }) }))
      })
    const { targetId } = await this.#send('Target.createTarget', { url: 'about:blank' })
    session = (await this.#send('Target.attachToTarget', { targetId, flatten: true })).sessionId
    for (const domain of ['Runtime', 'Log', 'Page', 'DOM', 'Network']) await this.#send(`${domain}.enable`)
  }

  /** Opens another page, and waits until it has taken the place of this one. */
  async goTo(url) {
    await this.evaluate('globalThis.isBeforeNavigation = true')
    await this.#send('Page.navigate', { url })
    // Between the two pages, expressions fail.
    await this.until(`globalThis.isBeforeNavigation !== true && document.readyState === 'complete'`, true)
  }

  /** The value of an expression in the page. */
  async evaluate(expression) {
    const { result, exceptionDetails, error } = await this.#send('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    })
    if (error !== undefined) throw new Error(`${expression.slice(0, 200)}: ${error.message}`)
    if (exceptionDetails !== undefined)
      throw new Error(`${expression.slice(0, 200)}: ${exceptionDetails.exception?.description}`)
    return result.value
  }

  /** Waits until an expression is true; `mayThrow`: one that fails is not true yet. */
  async until(expression, mayThrow = false) {
    const failed = (error) => {
      if (!mayThrow) throw error
      return false
    }
    for (let attempt = 0; attempt < attempts; attempt++) {
      if (await this.evaluate(expression).catch(failed)) return
      await new Promise((resolve) => setTimeout(resolve, attemptMs))
    }
    await this.screenshot('failure')
    throw new Error(`never true: ${expression} (${await this.evaluate('document.body.innerText.slice(0, 2000)')})`)
  }

  /** `Control+Shift+Enter`, `F6`, `a`. */
  async press(combination) {
    const parts = combination.split('+')
    const name = parts.pop()
    const bits = parts.reduce((sum, part) => sum | modifiers[part], 0)
    const { text, ...known } = keys[name] ?? {
      code: `Key${name.toUpperCase()}`,
      windowsVirtualKeyCode: name.toUpperCase().charCodeAt(0),
      text: name,
    }
    const common = { key: name, modifiers: bits, ...known }
    const types = text !== undefined && (bits & ~modifiers.Shift) === 0
    await this.#send('Input.dispatchKeyEvent', {
      type: types ? 'keyDown' : 'rawKeyDown',
      ...common,
      ...(types ? { text } : {}),
    })
    await this.#send('Input.dispatchKeyEvent', { type: 'keyUp', ...common })
  }

  async type(text) {
    await this.#send('Input.insertText', { text })
  }

  /**
   * Presses and releases the mouse in the middle of an element. `between`: what happens before the release. A browser may
   * drop what is pressed in the first moments of a new page; it is pressed again then.
   */
  async click(selector, between = async () => {}) {
    for (let attempt = 0; attempt < attempts; attempt++) {
      const place = await this.#placeOf(selector)
      const mouse = (type) => this.#send('Input.dispatchMouseEvent', { type, ...place, button: 'left', clickCount: 1 })
      await this.evaluate(
        `globalThis.isPressed = false; addEventListener('mousedown', () => { globalThis.isPressed = true }, { capture: true, once: true })`,
      )
      await mouse('mousePressed')
      const isPressed = await this.evaluate('globalThis.isPressed')
      if (isPressed) await between()
      await mouse('mouseReleased')
      if (isPressed) return
      await new Promise((resolve) => setTimeout(resolve, attemptMs))
    }
    throw new Error(`no click arrives: ${selector}`)
  }

  /** The middle of an element, once it is visible, not covered, and stays where it is. */
  async #placeOf(selector) {
    const found = `document.querySelector(${JSON.stringify(selector)})`
    await this.until(`(${middleIfStill})(${found})`)
    return this.evaluate(`(${middleIfStill})(${found})`)
  }

  /** Drags from one place of an element to another; both are shares of its size. */
  async drag(selector, [fromX, fromY], [toX, toY]) {
    await this.#placeOf(selector)
    const box = await this.evaluate(
      `(({ left, top, width, height }) => ({ left, top, width, height }))(document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect())`,
    )
    const at = (x, y) => ({ x: box.left + box.width * x, y: box.top + box.height * y })
    const button = { button: 'left', clickCount: 1 }
    await this.#send('Input.dispatchMouseEvent', { type: 'mouseMoved', ...at(fromX, fromY) })
    await this.#send('Input.dispatchMouseEvent', { type: 'mousePressed', ...at(fromX, fromY), ...button })
    for (let step = 1; step <= 4; step++) {
      const part = step / 4
      const place = at(fromX + (toX - fromX) * part, fromY + (toY - fromY) * part)
      await this.#send('Input.dispatchMouseEvent', { type: 'mouseMoved', ...place, ...button, buttons: 1 })
    }
    await this.#send('Input.dispatchMouseEvent', { type: 'mouseReleased', ...at(toX, toY), ...button })
  }

  async chooseFiles(selector, files) {
    const { root } = await this.#send('DOM.getDocument')
    const { nodeId } = await this.#send('DOM.querySelector', { nodeId: root.nodeId, selector })
    await this.#send('DOM.setFileInputFiles', { nodeId, files })
  }

  async size(width, height, phone = false) {
    await this.#send('Emulation.setDeviceMetricsOverride', {
      width,
      height,
      deviceScaleFactor: phone ? 2 : 1,
      mobile: phone,
    })
  }

  async colours(scheme) {
    await this.#send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] })
  }

  async cookies() {
    return (await this.#send('Network.getCookies')).cookies
  }

  async screenshot(name) {
    const { data } = await this.#send('Page.captureScreenshot', { format: 'png' })
    writeFileSync(join(this.#screenshots, `${name}.png`), Buffer.from(data, 'base64'))
  }
}
