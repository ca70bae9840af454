import { styleText } from 'node:util';

export interface Narration {
  /** Takes the log's JSON lines. */
  write(logLine: string): void;
  say(text: string): void;
  /** Adds a remark to the end of each line from now on. */
  add(remark: () => string): void;
}

/** Tells the sidecar's log to a person: one plain line an event. */
export function narrate(print: (line: string) => void): Narration {
  let remark: (() => string) | undefined;

  function say(text: string): void {
    const time = new Date().toTimeString().slice(0, 8);
    print(`${paint('dim', time)}  ${text}${remark === undefined ? '' : paint('dim', `  (${remark()})`)}`);
  }

  return {
    say,
    add(next) {
      remark = next;
    },
    write(logLine) {
      const { msg, level, time, credential, ...facts } = JSON.parse(logLine) as Record<string, unknown>;
      const details = Object.entries(facts).map(([name, value]) => `${name} ${format(value)}`);
      const text = `${msg}${details.length > 0 ? `: ${details.join(', ')}` : ''}`;
      const style = STYLES.get(String(level));
      say(style === undefined ? text : paint(style, `${level}: ${text}`));
    },
  };
}

const STYLES = new Map([
  ['warn', 'yellow'],
  ['error', 'red'],
  ['fatal', 'red'],
] as const satisfies readonly (readonly [string, Style])[]) as ReadonlyMap<string, Style>;

type Style = 'dim' | 'yellow' | 'red';

/** In colour on a terminal, unless NO_COLOR or its kind ask for none. */
function paint(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout });
}

function format(value: unknown): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
