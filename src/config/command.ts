import type { LogOutput } from '../platform/log/output.ts';
import type { ListenAddress } from '../platform/net/address.ts';
import type { Shutdown } from '../platform/process/shutdown.ts';
import type { Clock } from '../platform/time/clock.ts';
import type { NamedAddress, ReadFile } from './address-conflicts.ts';
import type { GivenValue, Settings } from './settings.ts';

/** What a command gets from the outside world; tests pass their own. */
export interface CommandContext {
  /** Arguments after the command's name. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: { write(text: string): void };
  /** Whether standard output is a terminal that wants colours. */
  readonly colour?: boolean;
  /** The log's way to standard output. */
  readonly logOutput: Pick<LogOutput, 'write' | 'losses'> & Partial<Pick<LogOutput, 'failure'>>;
  /** Text beside the output, for commands whose output is read by programs. */
  readonly stderr: { write(text: string): void };
  /** Standard input, for commands that read it. */
  readonly stdin: AsyncIterable<Buffer>;
  /** The process's termination signals, see `Shutdown`. */
  readonly shutdown: Shutdown;
  /** The clock of broker, issuer and injector; the system's by default. */
  readonly clock?: Clock;
}

/** A subcommand: a composition root, the only kind of place that builds things and wires them. */
export interface Command {
  /** One line for the list of commands. */
  readonly summary: string;
  /** The words after the command's name in its `--help`, such as `hash [SECRET]`; empty for most. */
  readonly operands?: string;
  readonly settings: Settings;
  /** Command lines, with what each does. */
  readonly examples: readonly (readonly [line: string, does: string])[];
  /**
   * Runs until done or asked to end; resolves to the exit status.
   * @throws {SidecarError} whose `exitCode` becomes the process's.
   */
  run(context: CommandContext): Promise<number>;
}

/**
 * Runs a function that listens at these addresses.
 * @throws its error; or {ConfigurationError} naming each address that another program holds, if that is the cause.
 */
export async function explainingConflicts<Result>(
  run: () => Promise<Result>,
  addresses: readonly NamedAddress[],
  file?: ReadFile,
): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    // Loaded only after a failure.
    const { explainConflicts } = await import('./address-conflicts.ts');
    await explainConflicts(error, addresses, file);
    throw error;
  }
}

/** The two listeners of broker, injector and issuer, as the user has named them. */
export function namedAddresses(
  given: Readonly<Partial<Record<'listen' | 'admin-listen', GivenValue>>>,
  { listen, adminListen }: { readonly listen: ListenAddress; readonly adminListen: ListenAddress },
): readonly NamedAddress[] {
  return [
    { key: given.listen?.key ?? '--listen', address: listen },
    { key: given['admin-listen']?.key ?? '--admin-listen', address: adminListen },
  ];
}
