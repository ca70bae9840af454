import type { LogOutput } from '../platform/log/output.ts';
import type { ListenAddress } from '../platform/net/address.ts';
import type { Shutdown } from '../platform/process/shutdown.ts';
import type { Clock } from '../platform/time/clock.ts';
import type { NamedAddress, ReadFile } from './address-conflicts.ts';
import type { GivenValue, Settings } from './settings.ts';

export interface CommandContext {
  /** Words after the command's name. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: { write(text: string): void };
  /** Whether a terminal wants colours. */
  readonly colour?: boolean;
  readonly logOutput: Pick<LogOutput, 'write' | 'losses'> & Partial<Pick<LogOutput, 'failure'>>;
  /** Used if programs read the output. */
  readonly stderr: { write(text: string): void };
  readonly stdin: AsyncIterable<Buffer>;
  readonly shutdown: Shutdown;
  /** The system's by default. */
  readonly clock?: Clock;
}

export interface Command {
  /** One line for the list of commands. */
  readonly summary: string;
  /** Such as `hash [SECRET]`, for `--help`. */
  readonly operands?: string;
  /** Those that are always the same, for completion. */
  readonly operandWords?: readonly string[];
  readonly settings: Settings;
  readonly examples: readonly (readonly [line: string, does: string])[];
  /**
   * Resolves to the exit status.
   * @throws {SidecarError} whose `exitCode` becomes the process's.
   */
  run(context: CommandContext): Promise<number>;
}

/** @throws what `run` throws; {ConfigurationError} if other programs hold addresses. */
export async function explainingConflicts<Result>(
  run: () => Promise<Result>,
  addresses: readonly NamedAddress[],
  file?: ReadFile,
): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    const { explainConflicts } = await import('./address-conflicts.ts');
    await explainConflicts(error, addresses, file);
    throw error;
  }
}

/** The listeners of broker, injector and issuer. */
export function namedAddresses(
  given: Readonly<Partial<Record<'listen' | 'admin-listen', GivenValue>>>,
  { listen, adminListen }: { readonly listen: ListenAddress; readonly adminListen: ListenAddress },
): readonly NamedAddress[] {
  return [
    { key: given.listen?.key ?? '--listen', address: listen },
    { key: given['admin-listen']?.key ?? '--admin-listen', address: adminListen },
  ];
}
