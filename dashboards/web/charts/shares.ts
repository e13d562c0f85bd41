// Shares of a whole, a bar a row: how the time of each member of a job was spent.
import { Fitted, drawing, s } from "../element";
import * as numbers from "../numbers";
import { cut } from "./scale";
import { legend } from "./states";

export interface Share {
  text: string; // in the legend
  fill: string; // class of its colour
}

export interface ShareRow {
  name: string;
  href: string; // the page of its own run
  note: string; // behind the bar
  strong: boolean; // to blame
  values: readonly (number | null)[]; // parallel to the shares, 0 to 1; null: not known
}

const ROW = 26;

function draw(width: number, shares: readonly Share[], rows: readonly ShareRow[], label: string) {
  const left = width < 480 ? 84 : 132;
  const right = width < 480 ? 76 : 150;
  const full = Math.max(40, width - left - right);
  const picture = drawing(width, rows.length * ROW + 6, label);
  picture.setAttribute("role", "group"); // its names are links
  rows.forEach((row, index) => {
    const y = index * ROW + 4;
    let x = left;
    const tone = row.strong ? "strong accent" : "";
    const name = s("text", { x: 0, y: y + 14, class: tone }, cut(row.name, left));
    picture.append(s("a", { href: row.href }, name));
    row.values.forEach((value, part) => {
      const long = Math.max(0, Math.min(1, value ?? 0)) * full;
      if (long > 0)
        picture.append(
          s(
            "rect",
            { x, y, width: long, height: ROW - 8, class: shares[part].fill },
            s("title", null, `${row.name}: ${shares[part].text} ${numbers.percent(value)}`),
          ),
        );
      x += long;
    });
    picture.append(s("text", { x: width, y: y + 14, class: "end dim" }, cut(row.note, right)));
  });
  return picture;
}

export function shareBars(
  shares: readonly Share[],
  rows: readonly ShareRow[],
  label: string,
): HTMLElement {
  return new Fitted((width) => draw(width, shares, rows, label), { class: "shares" }).element;
}

export const shareLegend = (shares: readonly Share[]) =>
  legend(shares.map((share) => ({ class: share.fill, text: share.text })));
