import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import type { Program } from './programs.ts';

/** What a client prints at the end of its call. */
export interface Answer {
  /** gRPC's status code. */
  readonly code: number;
  readonly message: string;
  readonly replies: readonly string[];
  /** Binary values in hexadecimal. */
  readonly initial: Readonly<Record<string, string>>;
  readonly trailing: Readonly<Record<string, string>>;
}

export type Command = 'once' | 'split' | 'join' | 'large' | 'many' | 'deadline' | 'cancel' | 'fail' | 'own';

export interface Conversation {
  /** Sends one message, and resolves to its reply. */
  say(text: string): Promise<string>;
  /** Ends the app's side. Resolves once the call has ended. */
  end(): Promise<Answer>;
}

/**
 * Has the client call `address` (`host:port`) once.
 * @throws {Error} with what it printed, when it prints no answer.
 */
export async function call(
  client: Program,
  address: string,
  command: Command,
  argument: string,
): Promise<Answer> {
  return await start(client, address, command, argument).end();
}

/** A call that goes on for as long as the test likes. */
export function converse(client: Program, address: string): Conversation {
  return start(client, address, 'converse', '');
}

function start(
  { name, command, args, env }: Program,
  address: string,
  clientCommand: Command | 'converse',
  argument: string,
): Conversation {
  const { PATH = '', HOME = '', JAVA_HOME } = process.env;
  const child = spawn(command, [...args, address, clientCommand, argument], {
    env: { PATH, HOME, ...(JAVA_HOME === undefined ? {} : { JAVA_HOME }), ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  // A test that fails must not leave its client behind.
  onTestFinished(() => void child.kill('SIGKILL'));
  const exited = once(child, 'close');
  let complaints = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints += text;
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  async function nextLine(): Promise<string> {
    const { value, done } = await lines.next();
    if (done === true) throw new Error(`${name} ended: ${complaints}`);
    return value as string;
  }
  return {
    async say(text) {
      child.stdin.write(`${text}\n`);
      return await nextLine();
    },
    async end() {
      child.stdin.end();
      const answer = JSON.parse(await nextLine()) as Answer;
      await exited;
      return answer;
    },
  };
}
