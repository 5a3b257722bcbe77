//! A dense matrix.

use std::ops::{Index, IndexMut};

/// Elements by rows.
#[derive(Clone, PartialEq, Debug)]
pub struct Matrix<T> {
    columns: usize,
    data: Vec<T>,
}

impl<T: Copy> Matrix<T> {
    /// All elements the same.
    pub fn filled(rows: usize, columns: usize, value: T) -> Self {
        Self { columns, data: vec![value; rows * columns] }
    }

    /// Each element from its row and column.
    pub fn from_fn(rows: usize, columns: usize, mut f: impl FnMut(usize, usize) -> T) -> Self {
        let data = (0..rows * columns).map(|i| f(i / columns, i % columns)).collect();
        Self { columns, data }
    }

    /// Each element of this one, changed.
    pub fn map<U: Copy>(&self, f: impl FnMut(T) -> U) -> Matrix<U> {
        Matrix { columns: self.columns, data: self.data.iter().copied().map(f).collect() }
    }

    /// The rows from `first` on, `rows` of them.
    pub fn rows(&self, first: usize, rows: usize) -> Self {
        Self { columns: self.columns, data: self.data[first * self.columns..(first + rows) * self.columns].to_vec() }
    }

    /// The columns from `first` on, `columns` of them.
    pub fn columns(&self, first: usize, columns: usize) -> Self {
        Self::from_fn(self.row_count(), columns, |i, j| self[(i, first + j)])
    }

    /// Rows as columns.
    pub fn transposed(&self) -> Self {
        Self::from_fn(self.columns, self.row_count(), |i, j| self[(j, i)])
    }

    /// Number of rows.
    pub fn row_count(&self) -> usize {
        self.data.len() / self.columns
    }

    /// Number of columns.
    pub fn column_count(&self) -> usize {
        self.columns
    }

    /// A row.
    pub fn row(&self, i: usize) -> &[T] {
        &self.data[i * self.columns..(i + 1) * self.columns]
    }

    /// A row.
    pub fn row_mut(&mut self, i: usize) -> &mut [T] {
        &mut self.data[i * self.columns..(i + 1) * self.columns]
    }

    /// All elements, by rows.
    pub fn elements(&self) -> &[T] {
        &self.data
    }
}

impl<T> Index<(usize, usize)> for Matrix<T> {
    type Output = T;

    fn index(&self, (i, j): (usize, usize)) -> &T {
        &self.data[i * self.columns..(i + 1) * self.columns][j]
    }
}

impl<T> IndexMut<(usize, usize)> for Matrix<T> {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut T {
        &mut self.data[i * self.columns..(i + 1) * self.columns][j]
    }
}
