/** How the configuration in use stands to what the file says. */

/** What came of reading the file anew. */
export type ReloadResult =
  /** It is in use. */
  | 'success'
  /** It says what is in use already. */
  | 'unchanged'
  /** Something is wrong with it. */
  | 'invalid'
  /** It changes what only another start can. */
  | 'restart_required'
  /** A credential that is new in it has no token yet. */
  | 'token_unavailable';

export type Standing =
  | { readonly state: 'current' }
  /** For tokens of credentials that are new in it; overdue after a while. */
  | {
      readonly state: 'waiting';
      readonly sinceMs: number;
      readonly overdue: boolean;
      /** A sentence for each credential. */
      readonly missing: () => readonly string[];
    }
  /** What was in use before stays so. */
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
