/** Lines of a shell, taken apart as far as the pages go: words, quotes, pipes, comments. No expansion. */

export interface SimpleCommand {
  /** Variables that are set for it, or by `export`. */
  readonly env: Readonly<Record<string, string>>;
  readonly words: readonly string[];
}

const ENDS_COMMAND = new Set(['|', ';', '&', '\n', '(', ')']);

/** Every command of a text, those in `$(…)` included. */
export function commandsIn(text: string): SimpleCommand[] {
  const joined = text.replace(/\\\n\s*/g, ' ');
  const inner = [...joined.matchAll(/\$\(([^()]*)\)/g)].flatMap(([, command = '']) => commandsIn(command));
  return [...inner, ...wordsOf(joined.replace(/\$\([^()]*\)/g, 'SUBSTITUTED')).map(withoutVariables)].filter(
    ({ words, env }) => words.length > 0 || Object.keys(env).length > 0,
  );
}

function wordsOf(text: string): string[][] {
  const commands: string[][] = [[]];
  let word: string | undefined;
  let quote: string | undefined;
  const end = (): void => {
    if (word !== undefined) commands.at(-1)?.push(word);
    word = undefined;
  };
  for (let at = 0; at < text.length; at++) {
    const letter = text[at] as string;
    if (quote !== undefined) {
      if (letter === quote) quote = undefined;
      else word += letter;
    } else if (letter === "'" || letter === '"') {
      quote = letter;
      word ??= '';
    } else if (letter === '#' && word === undefined) {
      at = text.indexOf('\n', at);
      if (at === -1) break;
      commands.push([]);
    } else if (ENDS_COMMAND.has(letter)) {
      end();
      commands.push([]);
    } else if (letter === ' ') end();
    else word = (word ?? '') + letter;
  }
  end();
  return commands;
}

/** Redirections are left out, with what they lead to, and the words of a loop. */
function withoutVariables(words: readonly string[]): SimpleCommand {
  const spoken = words[0] === 'for' || words[0] === 'done' ? [] : words[0] === 'do' ? words.slice(1) : words;
  const redirected = spoken.flatMap((word, index) =>
    /^\d?[<>]/.test(word) || /^\d?[<>]{1,2}$/.test(spoken[index - 1] ?? '') ? [] : [word],
  );
  const [first, ...others] = redirected;
  const rest = first === 'export' ? others : redirected;
  const count = rest.findIndex((word) => !/^\w+=/.test(word));
  const variables = count === -1 ? rest : rest.slice(0, count);
  const env = Object.fromEntries(
    variables.map((word) => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]),
  );
  return { env, words: count === -1 ? [] : rest.slice(count) };
}
