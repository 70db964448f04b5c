// Generates scripts that complete the commands and options of `penstock` in bash, zsh and fish, from the definitions of
// the commands.

export const shells = ['bash', 'zsh', 'fish'] as const

interface OptionOf {
  readonly long: string
  readonly short: string
  readonly description: string
  /** Values that the option takes; empty if it takes any or none. */
  readonly choices: readonly string[]
}

export interface CommandOf {
  readonly name: string
  readonly description: string
  readonly options: readonly OptionOf[]
}

export function completionScript(shell: string, commands: readonly CommandOf[]): string {
  switch (shell) {
    case 'bash':
      return bashScript(commands)
    case 'zsh':
      return zshScript(commands)
    default:
      return fishScript(commands)
  }
}

function bashScript(commands: readonly CommandOf[]): string {
  const options = commands.map(
    ({ name, options: own }) => `    ${name}) words="${own.map(({ long }) => long).join(' ')}" ;;`,
  )
  const values = commands.flatMap(({ name, options: own }) =>
    own
      .filter(({ choices }) => choices.length > 0)
      .map(({ long, choices }) => `    "${name} ${long}") words="${choices.join(' ')}" ;;`),
  )
  return `# Completion of penstock for bash.
_penstock() {
  local current=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} words=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${commands.map(({ name }) => name).join(' ')} help" -- "$current"))
    return
  fi
  case "\${COMP_WORDS[1]} $before" in
${values.join('\n')}
  esac
  if [ -z "$words" ] && [[ "$current" == -* ]]; then
    case "\${COMP_WORDS[1]}" in
${options.join('\n')}
    esac
  fi
  if [ -n "$words" ]; then COMPREPLY=($(compgen -W "$words" -- "$current")); else COMPREPLY=($(compgen -f -- "$current")); fi
}
complete -o filenames -F _penstock penstock
`
}

function zshScript(commands: readonly CommandOf[]): string {
  const described = commands.map(({ name, description }) => `    '${zshText(name)}:${zshText(description)}'`)
  const cases = commands.map(({ name, options }) => {
    const specs = options.map(({ long, description, choices }) => {
      const values = choices.length === 0 ? '' : `:value:(${choices.join(' ')})`
      return `'${long}[${zshText(description).replaceAll(/[[\]]/g, '')}]${values}'`
    })
    return `    ${name}) _arguments ${[...specs, "'*:file:_files'"].join(' ')} ;;`
  })
  return `#compdef penstock
_penstock() {
  local -a commands
  commands=(
${described.join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
${cases.join('\n')}
  esac
}
_penstock "$@"
`
}

function zshText(text: string): string {
  return text.replaceAll("'", "'\\''").replaceAll(':', '\\:')
}

function fishScript(commands: readonly CommandOf[]): string {
  const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const lines = commands.flatMap(({ name, description, options }) => [
    `complete -c penstock -n __fish_use_subcommand -f -a ${name} -d ${quoted(description)}`,
    ...options.map(({ long, short, description: about, choices }) => {
      const letter = short === '' ? '' : ` -s ${short.slice(1)}`
      const values = choices.length === 0 ? '' : ` -x -a ${quoted(choices.join(' '))}`
      return `complete -c penstock -n ${quoted(`__fish_seen_subcommand_from ${name}`)} -l ${long.slice(2)}${letter}${values} -d ${quoted(about)}`
    }),
  ])
  return `# Completion of penstock for fish.\n${lines.join('\n')}\n`
}
