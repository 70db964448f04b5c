// Shows a text with more lines than the terminal in a pager: the program in PENSTOCK_PAGER or PAGER, else less.

import { spawn } from 'node:child_process'
import type { PromptControls } from './prompt-state.js'

const usualPager = 'less'

export async function page(prompt: PromptControls, text: string): Promise<void> {
  const { output } = prompt.terminal
  const command = process.env['PENSTOCK_PAGER'] ?? process.env['PAGER'] ?? usualPager
  const isLong = text.split('\n').length > (output.rows ?? Number.POSITIVE_INFINITY)
  if (!prompt.state.pager || command === '' || output.isTTY !== true || !isLong) {
    prompt.write(text)
    return
  }
  await prompt.aside(async () => {
    if (!(await shown(command, text))) prompt.write(text)
  })
}

/** False if there is no such pager. */
function shown(command: string, text: string): Promise<boolean> {
  return new Promise((resolve) => {
    // S: long lines are not folded; F, X: a short text stays on the screen; R: colours.
    const env = { LESS: 'SFRX', ...process.env }
    const child = spawn(command, { stdio: ['pipe', 'inherit', 'inherit'], shell: true, env })
    child.on('error', () => resolve(false))
    child.on('close', (code) => resolve(code !== 127))
    // The user may leave the pager before it has read everything.
    child.stdin.on('error', () => {})
    child.stdin.end(text)
  })
}
