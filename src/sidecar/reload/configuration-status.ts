/** How the configuration in use relates to the file's content. */

/** The result of reading the file again. */
export type ReloadResult =
  /** It is in use. */
  | 'success'
  /** It equals the configuration in use. */
  | 'unchanged'
  /** It has mistakes. */
  | 'invalid'
  /** It changes what only a restart can. */
  | 'restart_required'
  /** A new credential in it has no token yet. */
  | 'token_unavailable';

export type Standing =
  | { readonly state: 'current' }
  /** For the tokens of its new credentials; overdue after a while. */
  | {
      readonly state: 'waiting';
      readonly sinceMs: number;
      readonly overdue: boolean;
      /** A sentence for each credential. */
      readonly missing: () => readonly string[];
    }
  /** The previous configuration stays in use. */
  | {
      readonly state: 'refused';
      readonly atMs: number;
      readonly result: 'invalid' | 'restart_required';
      /** For a person, in lines; holds no secret. */
      readonly report: string;
    };

export interface ConfigurationStatus {
  readonly file: string;
  /** 1 for the one that the program was started with. */
  readonly generation: number;
  /** Wall time at which it took effect. */
  readonly sinceMs: number;
  readonly standing: Standing;
}
