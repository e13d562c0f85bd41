// What a page is given, and what it gives back.
import type { Address } from "../address";
import type { Child } from "../element";

export interface Context {
  address: Address;
  id: number; // of the run or comparison; 0 where the page has none
  signal: AbortSignal; // ends with the page
}

export interface Shown {
  title: string; // of the document
  body: Child;
  after?: () => void; // once the body is in the document
}

export type MakePage = (context: Context) => Promise<Shown>;
