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
    print(`${time}  ${text}${remark === undefined ? '' : `  (${remark()})`}`);
  }

  return {
    say,
    add(next) {
      remark = next;
    },
    write(logLine) {
      const { msg, level, time, credential, ...facts } = JSON.parse(logLine) as Record<string, unknown>;
      const details = Object.entries(facts).map(([name, value]) => `${name} ${format(value)}`);
      say(
        [level === 'info' ? '' : `${level}: `, msg, details.length > 0 ? `: ${details.join(', ')}` : ''].join(
          '',
        ),
      );
    },
  };
}

function format(value: unknown): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
